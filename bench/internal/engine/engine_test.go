package engine

import (
	"testing"

	"karpenter-bench/internal/scenario"
)

func machine(name, cpu, memory string, spot, onDemand float64) scenario.InstanceType {
	return scenario.InstanceType{
		Name:     name,
		Capacity: scenario.Resources{"cpu": cpu, "memory": memory, "pods": "110"},
		Labels:   map[string]string{"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"},
		Offerings: []scenario.Offering{
			{Zone: "a", CapacityType: "spot", Price: spot, Available: true},
			{Zone: "b", CapacityType: "spot", Price: 2 * spot, Available: true},
			{Zone: "c", CapacityType: "spot", Price: spot / 2, Available: false},
			{Zone: "a", CapacityType: "on-demand", Price: onDemand, Available: true},
		},
	}
}

// TestSolve asks for answers that a person can check.
func TestSolve(t *testing.T) {
	one := scenario.Resources{"cpu": "1"}
	for name, test := range map[string]struct {
		pods  []scenario.Pod
		nodes []scenario.Node
		want  Result // only the counts and prices
	}{
		"three pods need the large machine": {
			pods: []scenario.Pod{{Name: "p", Replicas: 3, Requests: one}},
			want: Result{NewNodeClaims: 1, PodsOnNewNodes: 3, PricePerHour: 0.25, WorstLaunchPerHour: 0.5},
		},
		"a zone is kept to": {
			pods: []scenario.Pod{{Name: "p", Requests: one, NodeSelector: map[string]string{"topology.kubernetes.io/zone": "b"}}},
			want: Result{NewNodeClaims: 1, PodsOnNewNodes: 1, PricePerHour: 0.125, WorstLaunchPerHour: 0.125},
		},
		"what is there is used first": {
			pods: []scenario.Pod{{Name: "p", Replicas: 3, Requests: one}},
			nodes: []scenario.Node{{
				Name: "n", NodePool: "default", InstanceType: "large", Zone: "a", CapacityType: "on-demand",
				Pods: []scenario.Pod{{Name: "busy", Requests: scenario.Resources{"cpu": "6"}}},
			}},
			want: Result{NewNodeClaims: 1, PodsOnNewNodes: 1, PodsOnExistingNodes: 2, ExistingNodesUsed: 1, PricePerHour: 0.0625, WorstLaunchPerHour: 0.125},
		},
		"what fits nowhere is said so": {
			pods: []scenario.Pod{{Name: "huge", Requests: scenario.Resources{"cpu": "64"}}},
			want: Result{PodErrorCount: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := Solve(&scenario.Scenario{
				InstanceTypes: []scenario.InstanceType{machine("small", "2", "4Gi", 0.0625, 0.25), machine("large", "8", "16Gi", 0.25, 1)},
				NodePools:     []scenario.NodePool{{Name: "default"}},
				Nodes:         test.nodes, Pods: test.pods,
			}, Config{Runs: 2, Workers: 1, Memory: true})
			if err != nil {
				t.Fatal(err)
			}
			got := report.Result
			if len(got.Claims) != got.NewNodeClaims || len(got.PodErrors) != got.PodErrorCount {
				t.Errorf("counts and lists disagree: %+v", got)
			}
			got.Claims, got.Existing, got.PodErrors = nil, nil, nil
			if !equal(got, test.want) {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
			if report.Memory.AllocBytes == 0 || len(report.Timing.Total) != 2 {
				t.Errorf("nothing measured: %+v", report)
			}
		})
	}
}

func equal(a, b Result) bool {
	return a.NewNodeClaims == b.NewNodeClaims && a.PodsOnNewNodes == b.PodsOnNewNodes && a.PodErrorCount == b.PodErrorCount &&
		a.PodsOnExistingNodes == b.PodsOnExistingNodes && a.ExistingNodesUsed == b.ExistingNodesUsed &&
		a.PricePerHour == b.PricePerHour && a.WorstLaunchPerHour == b.WorstLaunchPerHour && a.TimedOut == b.TimedOut
}

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		samples Samples
		want    float64
	}{{nil, 0}, {Samples{3}, 3}, {Samples{9, 1, 2}, 2}, {Samples{4, 1, 2, 9}, 3}} {
		if got := test.samples.median(); got != test.want {
			t.Errorf("%v: got %v, want %v", test.samples, got, test.want)
		}
	}
}
