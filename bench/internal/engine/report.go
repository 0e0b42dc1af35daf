package engine

import (
	"encoding/json"
	"slices"
	"time"

	"karpenter-bench/internal/scenario"
)

// Report is what one scenario cost and what came of it.
type Report struct {
	Peer     Peer     `json:"peer"`
	Scenario Size     `json:"scenario"`
	Runs     int      `json:"runs"`
	Timing   Timing   `json:"timing"`
	Memory   *Memory  `json:"memory,omitempty"`      // of the solve
	Setup    *Memory  `json:"setupMemory,omitempty"` // of what comes before it
	Spread   Extremes `json:"spread"`
	Result   Result   `json:"result"`
}

// Peer names the scheduler and how it was run.
type Peer struct {
	Module     string `json:"module"`
	Version    string `json:"version"`
	Go         string `json:"go"`
	GOMAXPROCS int    `json:"gomaxprocs"`
	Workers    int    `json:"workers"`
}

// Size counts what the scenario holds.
type Size struct {
	Name          string `json:"name"`
	Pods          int    `json:"pods"`
	InstanceTypes int    `json:"instanceTypes"`
	NodePools     int    `json:"nodePools"`
	Nodes         int    `json:"nodes"`
	BoundPods     int    `json:"boundPods"`
}

func sizeOf(in *scenario.Scenario) Size {
	out := Size{
		Name: in.Name, Pods: scenario.Count(in.Pods), InstanceTypes: len(in.InstanceTypes),
		NodePools: len(in.NodePools), Nodes: len(in.Nodes),
	}
	for _, node := range in.Nodes {
		out.BoundPods += scenario.Count(node.Pods)
	}
	return out
}

// Timing holds the phases of a scheduling loop, a sample for each run.
type Timing struct {
	Solve         Samples `json:"solve"`
	SolveCPU      Samples `json:"solveCPU"`
	CopyNodes     Samples `json:"copyNodes"`
	Topology      Samples `json:"topology"`
	Scheduler     Samples `json:"scheduler"`
	Truncate      Samples `json:"truncate"`
	Total         Samples `json:"total"`
	PodsPerSecond float64 `json:"podsPerSecond"`
}

// Samples are milliseconds. In JSON they come with median, least and greatest.
type Samples []float64

func (s *Samples) add(elapsed time.Duration) {
	*s = append(*s, float64(elapsed.Microseconds())/1000)
}

func (s Samples) median() float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// MarshalJSON implements json.Marshaler.
func (s Samples) MarshalJSON() ([]byte, error) {
	out := struct {
		Median float64   `json:"median"`
		Min    float64   `json:"min"`
		Max    float64   `json:"max"`
		All    []float64 `json:"all"`
	}{Median: s.median(), All: s}
	if len(s) > 0 {
		out.Min, out.Max = slices.Min(s), slices.Max(s)
	}
	return json.Marshal(out)
}

// Memory counts bytes on the Go heap.
type Memory struct {
	AllocBytes    uint64 `json:"allocBytes"`
	Mallocs       uint64 `json:"mallocs"`
	BaseHeapBytes uint64 `json:"baseHeapBytes"` // before, garbage collected
	PeakHeapBytes uint64 `json:"peakHeapBytes"` // garbage not yet collected included
	GCCycles      uint32 `json:"gcCycles"`
}

// Extremes show how far the answers of the runs lie apart: the scheduler walks
// Go maps, whose order changes.
type Extremes struct {
	NewNodeClaims Range `json:"newNodeClaims"`
	PricePerHour  Range `json:"pricePerHour"`
	PodErrors     Range `json:"podErrors"`
}

// Range is the least and the greatest of some values.
type Range struct {
	Min float64 `json:"min"`
	Max float64 `json:"max"`
}

func rangeOf(results []*Result, value func(*Result) float64) Range {
	out := Range{value(results[0]), value(results[0])}
	for _, result := range results {
		out = Range{min(out.Min, value(result)), max(out.Max, value(result))}
	}
	return out
}

// Result is the answer of one run.
type Result struct {
	NewNodeClaims       int                 `json:"newNodeClaims"`
	PodsOnNewNodes      int                 `json:"podsOnNewNodes"`
	PodsOnExistingNodes int                 `json:"podsOnExistingNodes"`
	PodErrorCount       int                 `json:"podErrorCount"`
	ExistingNodesUsed   int                 `json:"existingNodesUsed"`
	PricePerHour        float64             `json:"pricePerHour"`
	WorstLaunchPerHour  float64             `json:"worstLaunchPerHour"`
	TimedOut            bool                `json:"timedOut,omitempty"`
	Claims              []Claim             `json:"claims,omitempty"`
	Existing            map[string][]string `json:"existing,omitempty"`
	PodErrors           map[string]string   `json:"podErrors,omitempty"`
}

// Claim is a node to be bought.
type Claim struct {
	NodePool           string             `json:"nodePool"`
	Cheapest           Launch             `json:"cheapest"`
	WorstLaunchPerHour float64            `json:"worstLaunchPerHour"`
	Requests           scenario.Resources `json:"requests"`
	Pods               []string           `json:"pods"`
	InstanceTypes      []string           `json:"instanceTypes"`
}

// Launch is one way to buy it.
type Launch struct {
	InstanceType string  `json:"instanceType"`
	Zone         string  `json:"zone"`
	CapacityType string  `json:"capacityType"`
	Price        float64 `json:"price"`
}
