// Package scenario is the file format in which schedulers are compared: one
// scheduling problem as a JSON object that names no cloud provider. The README
// of this module describes every field.
package scenario

import (
	corev1 "k8s.io/api/core/v1"
)

// Version of the format that this package reads and writes.
const Version = 1

// Resources holds Kubernetes quantities ("250m", "512Mi") by resource name.
type Resources map[string]string

// Scenario is a cluster, what may be bought for it, and the pods that wait.
type Scenario struct {
	Version         int            `json:"version"`
	Name            string         `json:"name"`
	Description     string         `json:"description,omitempty"`
	Seed            uint64         `json:"seed"`
	Options         Options        `json:"options"`
	WellKnownLabels []string       `json:"wellKnownLabels,omitempty"`
	InstanceTypes   []InstanceType `json:"instanceTypes,omitempty"`
	NodePools       []NodePool     `json:"nodePools,omitempty"`
	DaemonSets      []Pod          `json:"daemonSets,omitempty"`
	Nodes           []Node         `json:"nodes,omitempty"`
	Pods            []Pod          `json:"pods,omitempty"`
}

// Options are the settings of an autoscaler that may change its answer.
type Options struct {
	PreferencePolicy        string `json:"preferencePolicy,omitempty"`
	MinValuesPolicy         string `json:"minValuesPolicy,omitempty"`
	SpotToSpotConsolidation bool   `json:"spotToSpotConsolidation,omitempty"`
}

// Requirement constrains one label.
type Requirement struct {
	Key       string   `json:"key"`
	Operator  string   `json:"operator"`
	Values    []string `json:"values,omitempty"`
	MinValues *int     `json:"minValues,omitempty"`
}

// InstanceType is a machine that can be bought.
type InstanceType struct {
	Name         string            `json:"name"`
	Capacity     Resources         `json:"capacity"`
	Overhead     Resources         `json:"overhead,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	Requirements []Requirement     `json:"requirements,omitempty"`
	Offerings    []Offering        `json:"offerings"`
}

// Offering is the price of an instance type in one zone.
type Offering struct {
	Zone         string  `json:"zone"`
	CapacityType string  `json:"capacityType"`
	Price        float64 `json:"price"`
	Available    bool    `json:"available"`
}

// NodePool says which nodes may be added.
type NodePool struct {
	Name          string            `json:"name"`
	Weight        int32             `json:"weight,omitempty"`
	Requirements  []Requirement     `json:"requirements,omitempty"`
	Labels        map[string]string `json:"labels,omitempty"`
	Taints        []corev1.Taint    `json:"taints,omitempty"`
	StartupTaints []corev1.Taint    `json:"startupTaints,omitempty"`
	Limits        Resources         `json:"limits,omitempty"`
	InstanceTypes []string          `json:"instanceTypes,omitempty"`
	Disruption    *Disruption       `json:"disruption,omitempty"`
}

// Disruption says when nodes of a pool may be removed.
type Disruption struct {
	ConsolidationPolicy string   `json:"consolidationPolicy,omitempty"`
	ConsolidateAfter    string   `json:"consolidateAfter,omitempty"`
	Budgets             []Budget `json:"budgets,omitempty"`
}

// Budget is the number or share of nodes that may go at a time.
type Budget struct {
	Nodes string `json:"nodes"`
}

// Node is a machine that the cluster already has.
type Node struct {
	Name         string            `json:"name"`
	NodePool     string            `json:"nodePool,omitempty"`
	InstanceType string            `json:"instanceType,omitempty"`
	Zone         string            `json:"zone,omitempty"`
	CapacityType string            `json:"capacityType,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	Taints       []corev1.Taint    `json:"taints,omitempty"`
	Capacity     Resources         `json:"capacity,omitempty"`
	Allocatable  Resources         `json:"allocatable,omitempty"`
	Pods         []Pod             `json:"pods,omitempty"`
}

// Pod is a waiting pod, a pod on a node, or the template of a daemonset.
type Pod struct {
	Name                      string                            `json:"name"`
	Namespace                 string                            `json:"namespace,omitempty"`
	Replicas                  int                               `json:"replicas,omitempty"`
	Owner                     string                            `json:"owner,omitempty"`
	Labels                    map[string]string                 `json:"labels,omitempty"`
	Annotations               map[string]string                 `json:"annotations,omitempty"`
	NodeSelector              map[string]string                 `json:"nodeSelector,omitempty"`
	Requests                  Resources                         `json:"requests,omitempty"`
	Affinity                  *corev1.Affinity                  `json:"affinity,omitempty"`
	Tolerations               []corev1.Toleration               `json:"tolerations,omitempty"`
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
	HostPorts                 []HostPort                        `json:"hostPorts,omitempty"`
	Priority                  *int32                            `json:"priority,omitempty"`
}

// HostPort is a port that a pod occupies on its node.
type HostPort struct {
	Port     int32  `json:"port"`
	Protocol string `json:"protocol,omitempty"`
	HostIP   string `json:"hostIP,omitempty"`
}
