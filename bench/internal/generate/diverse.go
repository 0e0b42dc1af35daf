package generate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"karpenter-bench/internal/scenario"
)

// diverse has the mix of the benchmark in the Go scheduler's repository: five
// kinds of pod in equal parts, what is left over being plain. That benchmark
// draws UIDs, which decide between pods of equal size; here the order is drawn.
func diverse(d dice, count int) *scenario.Scenario {
	letter := func(key string) map[string]string {
		return map[string]string{key: oneOf(d, "a", "b", "c", "d", "e", "f", "g")}
	}
	plain := func(pod *scenario.Pod) { pod.Labels = letter("my-label") }
	spread := func(key string) func(*scenario.Pod) {
		return func(pod *scenario.Pod) {
			// A pod need not be one of those it wants spread.
			pod.Labels = letter("my-label")
			pod.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{spreadOver(key, 1, letter("my-label"))}
		}
	}
	kinds := []struct {
		name  string
		count int
		shape func(*scenario.Pod)
	}{
		{"generic", count / 5, plain},
		{"zone-spread", count / 5, spread(zone)},
		{"host-spread", count / 5, spread(hostname)},
		{"zone-affinity", count / 5, func(pod *scenario.Pod) {
			pod.Labels = letter("my-affinity")
			pod.Affinity = together(zone, pod.Labels)
		}},
		{"host-anti", count / 5, func(pod *scenario.Pod) {
			pod.Labels = map[string]string{"app": "nginx"}
			pod.Affinity = apart(hostname, pod.Labels)
		}},
		{"generic", count % 5, plain},
	}
	var pods []scenario.Pod
	for _, kind := range kinds {
		for range kind.count {
			pod := scenario.Pod{Name: numbered(kind.name, len(pods))}
			kind.shape(&pod)
			cpu := oneOf(d, 100, 250, 500, 1000, 1500)
			pod.Requests = size{cpu, oneOf(d, 100, 256, 512, 1024, 2048, 4096)}.requests()
			pods = append(pods, pod)
		}
	}
	shuffle(d, pods)
	made := &scenario.Scenario{
		WellKnownLabels: []string{"integer", "size", "special"},
		NodePools:       []scenario.NodePool{{Name: "default", Limits: scenario.Resources{"cpu": "10000000", "memory": "10000000Gi"}}},
		Pods:            pods,
	}
	for cpus := 1; cpus <= 400; cpus++ {
		made.InstanceTypes = append(made.InstanceTypes, linearType(cpus))
	}
	return made
}

// linearType is a type of that benchmark's provider: 2Gi and 10 pods for each
// CPU, priced by CPU and bytes, spot no cheaper and missing in the third zone.
func linearType(cpus int) scenario.InstanceType {
	price := float64(0.1*float64(cpus)) + 0.1*float64(cpus)*2*(1<<30)/1e9
	made := scenario.InstanceType{
		Name:         fmt.Sprintf("fake-it-%d", cpus-1),
		Capacity:     scenario.Resources{"cpu": fmt.Sprint(cpus), "memory": fmt.Sprintf("%dGi", 2*cpus), "pods": fmt.Sprint(10 * cpus)},
		Overhead:     scenario.Resources{"cpu": "100m", "memory": "10Mi"},
		Labels:       map[string]string{corev1.LabelArchStable: "amd64", "integer": fmt.Sprint(cpus), "size": "small"},
		Requirements: []scenario.Requirement{requireIn(corev1.LabelOSStable, "darwin", "linux", "windows")},
	}
	if cpus > 4 {
		made.Labels["size"], made.Labels["special"] = "large", "optional"
	} else {
		made.Requirements = append(made.Requirements, scenario.Requirement{Key: "special", Operator: "DoesNotExist"})
	}
	offer := func(capacityType string, zones ...string) {
		for _, zone := range zones {
			made.Offerings = append(made.Offerings, scenario.Offering{Zone: zone, CapacityType: capacityType, Price: price, Available: true})
		}
	}
	offer("spot", "test-zone-1", "test-zone-2")
	offer("on-demand", "test-zone-1", "test-zone-2", "test-zone-3")
	return made
}
