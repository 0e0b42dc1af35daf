package engine

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	provisioning "sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/karpenter/pkg/utils/resources"

	"karpenter-bench/internal/scenario"
)

// read turns the scheduler's answer into a result and refuses one that places a
// pod twice or on a machine too small for it.
func read(answer provisioning.Results) (*Result, error) {
	out := &Result{Existing: map[string][]string{}, PodErrors: map[string]string{}}
	for _, planned := range answer.NewNodeClaims {
		claim, err := readClaim(planned)
		if err != nil {
			return nil, err
		}
		out.Claims = append(out.Claims, claim)
		out.PodsOnNewNodes += len(claim.Pods)
		out.PricePerHour += claim.Cheapest.Price
		out.WorstLaunchPerHour += claim.WorstLaunchPerHour
	}
	slices.SortStableFunc(out.Claims, func(a, b Claim) int { return cmp.Compare(b.Cheapest.Price, a.Cheapest.Price) })
	for _, node := range answer.ExistingNodes {
		if len(node.Pods) > 0 {
			out.Existing[node.Name()] = podNames(node.Pods)
			out.PodsOnExistingNodes += len(node.Pods)
		}
	}
	for pod, err := range answer.PodErrors {
		out.PodErrors[podName(pod)] = err.Error()
	}
	out.NewNodeClaims, out.ExistingNodesUsed, out.PodErrorCount = len(out.Claims), len(out.Existing), len(out.PodErrors)
	return out, placedOnce(out)
}

func placedOnce(result *Result) error {
	placed := map[string]bool{}
	groups := [][]string{}
	for _, claim := range result.Claims {
		groups = append(groups, claim.Pods)
	}
	for _, pods := range result.Existing {
		groups = append(groups, pods)
	}
	for _, pods := range groups {
		for _, pod := range pods {
			if placed[pod] {
				return fmt.Errorf("pod %s is placed twice", pod)
			}
			placed[pod] = true
		}
	}
	return nil
}

func podName(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

func podNames(pods []*corev1.Pod) []string {
	out := make([]string, len(pods))
	for i, pod := range pods {
		out[i] = podName(pod)
	}
	return out
}

func readClaim(planned *provisioning.NodeClaim) (Claim, error) {
	out := Claim{NodePool: planned.NodePoolName, Requests: scenario.Resources{}, Pods: podNames(planned.Pods)}
	machine, offering := cheapest(planned.InstanceTypeOptions, planned.Requirements)
	if machine == nil {
		return out, fmt.Errorf("a claim of pool %s has no type that can be bought", planned.NodePoolName)
	}
	requests := resources.RequestsForPods(planned.Pods...)
	if !resources.Fits(requests, machine.Allocatable()) {
		return out, fmt.Errorf("a claim of pool %s does not fit on %s", planned.NodePoolName, machine.Name)
	}
	for name, quantity := range requests {
		out.Requests[string(name)] = quantity.String()
	}
	for _, option := range planned.InstanceTypeOptions {
		out.InstanceTypes = append(out.InstanceTypes, option.Name)
	}
	out.Cheapest = Launch{
		InstanceType: machine.Name,
		Zone:         offering.Requirements.Get(corev1.LabelTopologyZone).Any(),
		CapacityType: offering.Requirements.Get(karpv1.CapacityTypeLabelKey).Any(),
		Price:        offering.Price,
	}
	out.WorstLaunchPerHour = machine.Offerings.Available().WorstLaunchPrice(planned.Requirements)
	return out, nil
}

// cheapest finds the first of the cheapest offerings that meet the requirements.
func cheapest(options cloudprovider.InstanceTypes, requirements scheduling.Requirements) (*cloudprovider.InstanceType, *cloudprovider.Offering) {
	var machine *cloudprovider.InstanceType
	var best *cloudprovider.Offering
	for _, option := range options {
		for _, offering := range option.Offerings.Available().Compatible(requirements) {
			if best == nil || offering.Price < best.Price {
				machine, best = option, offering
			}
		}
	}
	return machine, best
}
