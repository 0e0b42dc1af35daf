package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/logging"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/utils/daemonset"
	"sigs.k8s.io/karpenter/pkg/utils/nodepool"

	"karpenter-bench/internal/scenario"
)

// cluster is a scenario as the objects and the state that Karpenter works on.
type cluster struct {
	ctx     context.Context
	store   *store
	state   *state.Cluster
	pools   []*karpv1.NodePool
	types   map[string]*cloudprovider.InstanceType
	byPool  map[string][]*cloudprovider.InstanceType
	daemons []*corev1.Pod
	pending []*corev1.Pod
}

// newCluster registers the scenario's labels with Karpenter, which keeps them in
// a global: a process can hold the cluster of one scenario only.
func newCluster(in *scenario.Scenario, workers int) (*cluster, error) {
	karpv1.WellKnownLabels.Insert(in.WellKnownLabels...)
	log.SetLogger(logging.NopLogger)
	settings, err := newOptions(in.Options, workers)
	if err != nil {
		return nil, err
	}
	ctx := log.IntoContext(context.Background(), logging.NopLogger)
	c := &cluster{
		ctx:    options.ToContext(injection.WithControllerName(ctx, "provisioner"), settings),
		store:  newStore(),
		types:  map[string]*cloudprovider.InstanceType{},
		byPool: map[string][]*cloudprovider.InstanceType{},
	}
	c.state = state.NewCluster(clock.RealClock{}, c.store, &provider{byPool: c.byPool})
	for _, fill := range []func(*scenario.Scenario) error{c.addPools, c.addDaemons, c.addPending, c.addNodes} {
		if err := fill(in); err != nil {
			return nil, err
		}
	}
	c.state.SetSynced(true)
	return c, nil
}

func newOptions(in scenario.Options, workers int) (*options.Options, error) {
	out := &options.Options{
		CPURequests:       int64(workers) * 1000,
		BatchMaxDuration:  10 * time.Second,
		BatchIdleDuration: time.Second,
		IgnoreDRARequests: true,
		FeatureGates:      options.FeatureGates{ReservedCapacity: true, SpotToSpotConsolidation: in.SpotToSpotConsolidation},
	}
	preference, known := map[string]options.PreferencePolicy{
		"": options.PreferencePolicyRespect, "Respect": options.PreferencePolicyRespect, "Ignore": options.PreferencePolicyIgnore,
	}[in.PreferencePolicy]
	if !known {
		return nil, fmt.Errorf("preferencePolicy %q is neither Respect nor Ignore", in.PreferencePolicy)
	}
	minValues, known := map[string]options.MinValuesPolicy{
		"": options.MinValuesPolicyStrict, "Strict": options.MinValuesPolicyStrict, "BestEffort": options.MinValuesPolicyBestEffort,
	}[in.MinValuesPolicy]
	if !known {
		return nil, fmt.Errorf("minValuesPolicy %q is neither Strict nor BestEffort", in.MinValuesPolicy)
	}
	out.PreferencePolicy, out.MinValuesPolicy = preference, minValues
	return out, nil
}

func (c *cluster) addPools(in *scenario.Scenario) error {
	var all []*cloudprovider.InstanceType
	for _, described := range in.InstanceTypes {
		made, err := newInstanceType(described)
		if err != nil {
			return fmt.Errorf("instance type %s: %w", described.Name, err)
		}
		all = append(all, made)
		c.types[made.Name] = made
	}
	for _, described := range in.NodePools {
		pool, err := newNodePool(described)
		if err != nil {
			return fmt.Errorf("node pool %s: %w", described.Name, err)
		}
		c.pools = append(c.pools, pool)
		c.store.put(pool)
		c.byPool[pool.Name] = all
		if len(described.InstanceTypes) == 0 {
			continue
		}
		c.byPool[pool.Name] = slices.DeleteFunc(slices.Clone(all), func(offered *cloudprovider.InstanceType) bool {
			return !slices.Contains(described.InstanceTypes, offered.Name)
		})
		if len(c.byPool[pool.Name]) != len(described.InstanceTypes) {
			return fmt.Errorf("node pool %s: names an instance type that is not there, or one twice", pool.Name)
		}
	}
	nodepool.OrderByWeight(c.pools)
	return nil
}

func (c *cluster) addDaemons(in *scenario.Scenario) error {
	for _, described := range in.DaemonSets {
		set, err := newDaemonSet(described)
		if err != nil {
			return fmt.Errorf("daemonset: %w", err)
		}
		c.daemons = append(c.daemons, daemonset.PodForDaemonSet(set))
	}
	return nil
}

func (c *cluster) addPending(in *scenario.Scenario) error {
	for described := range scenario.Single(in.Pods) {
		pod, err := newPod(described, len(c.pending))
		if err != nil {
			return err
		}
		c.pending = append(c.pending, waiting(pod))
		c.store.put(pod)
	}
	return nil
}

func (c *cluster) addNodes(in *scenario.Scenario) error {
	number := len(c.pending)
	for _, described := range in.Nodes {
		node, claim, err := newNode(described, c.types[described.InstanceType])
		if err != nil {
			return fmt.Errorf("node %s: %w", described.Name, err)
		}
		c.store.put(node)
		if claim != nil {
			c.store.put(claim)
			c.state.UpdateNodeClaim(claim)
		}
		var withAffinity []*corev1.Pod
		for single := range scenario.Single(described.Pods) {
			pod, err := newPod(single, number)
			if err != nil {
				return fmt.Errorf("node %s: %w", described.Name, err)
			}
			number++
			c.store.put(bound(pod, node.Name))
			if pod.Spec.Affinity != nil {
				withAffinity = append(withAffinity, pod)
			}
		}
		// The node brings its pods along, except for the index of anti-affinity.
		if err := c.state.UpdateNode(c.ctx, node); err != nil {
			return fmt.Errorf("node %s: %w", described.Name, err)
		}
		for _, pod := range withAffinity {
			if err := c.state.UpdatePod(c.ctx, pod); err != nil {
				return fmt.Errorf("pod %s: %w", pod.Name, err)
			}
		}
	}
	return nil
}
