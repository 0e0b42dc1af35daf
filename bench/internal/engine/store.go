package engine

import (
	"context"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/events"
)

// store answers the scheduler's reads as the informer cache of a controller
// does: from maps and indexes, copying what it hands out. The fake client of
// controller-runtime sends each object through JSON on each list, work that
// no production client does and that would be most of what is measured.
//
// The embedded client is nil: whatever else is called panics.
type store struct {
	client.Client
	objects     map[reflect.Type]map[client.ObjectKey]client.Object
	byNode      map[string][]*corev1.Pod
	byNamespace map[string][]*corev1.Pod
}

func newStore() *store {
	return &store{
		objects:     map[reflect.Type]map[client.ObjectKey]client.Object{},
		byNode:      map[string][]*corev1.Pod{},
		byNamespace: map[string][]*corev1.Pod{},
	}
}

// put adds an object that is not there yet.
func (s *store) put(object client.Object) {
	kind := reflect.TypeOf(object)
	if s.objects[kind] == nil {
		s.objects[kind] = map[client.ObjectKey]client.Object{}
	}
	s.objects[kind][client.ObjectKeyFromObject(object)] = object
	if pod, ok := object.(*corev1.Pod); ok {
		s.byNode[pod.Spec.NodeName] = append(s.byNode[pod.Spec.NodeName], pod)
		s.byNamespace[pod.Namespace] = append(s.byNamespace[pod.Namespace], pod)
	}
}

// Get implements client.Reader.
func (s *store) Get(_ context.Context, key client.ObjectKey, out client.Object, _ ...client.GetOption) error {
	found, ok := s.objects[reflect.TypeOf(out)][key]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T", out)}, key.String())
	}
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(found.DeepCopyObject()).Elem())
	return nil
}

// List implements client.Reader for pods of one node or one namespace, which is
// all that the scheduler lists. A scenario has no namespaces with labels, so a
// namespaceSelector is refused here rather than answered wrongly.
func (s *store) List(_ context.Context, out client.ObjectList, options ...client.ListOption) error {
	pods, ok := out.(*corev1.PodList)
	if !ok {
		return fmt.Errorf("a scenario does not say which %T there are", out)
	}
	query := client.ListOptions{}
	query.ApplyOptions(options)
	candidates := s.byNamespace[query.Namespace]
	if query.FieldSelector != nil {
		node, ok := query.FieldSelector.RequiresExactMatch("spec.nodeName")
		if !ok {
			return fmt.Errorf("no index for %s", query.FieldSelector)
		}
		candidates = s.byNode[node]
	}
	for _, pod := range candidates {
		if query.LabelSelector == nil || query.LabelSelector.Matches(labels.Set(pod.Labels)) {
			pods.Items = append(pods.Items, *pod.DeepCopy())
		}
	}
	return nil
}

// provider knows the instance types of a scenario. It can do nothing else: as
// in store, the embedded interface is nil.
type provider struct {
	cloudprovider.CloudProvider
	byPool map[string][]*cloudprovider.InstanceType
}

// GetInstanceTypes implements cloudprovider.CloudProvider.
func (p *provider) GetInstanceTypes(_ context.Context, pool *karpv1.NodePool) ([]*cloudprovider.InstanceType, error) {
	return p.byPool[pool.Name], nil
}

// silent drops events, which cost nothing that is to be measured.
type silent struct{}

// Publish implements events.Recorder.
func (silent) Publish(...events.Event) {}
