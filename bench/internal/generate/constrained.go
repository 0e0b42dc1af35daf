package generate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"karpenter-bench/internal/scenario"
)

// zonal is made of services of 2 to 30 replicas, most of which care where their
// replicas are: apart over zones or hosts, together in a zone, or near another.
func zonal(d dice, count int) *scenario.Scenario {
	var pods []scenario.Pod
	for left, number := count, 0; left > 0; number++ {
		labels := app("service", number)
		pod := scenario.Pod{Name: labels["app"], Labels: labels, Replicas: min(left, d.between(2, 30)), Requests: drawSize(d).requests()}
		spread := func(constraints ...corev1.TopologySpreadConstraint) { pod.TopologySpreadConstraints = constraints }
		switch d.weighted(15, 25, 10, 15, 10, 10, 10, 5) {
		case 1:
			spread(spreadOver(zone, 1, labels))
		case 2:
			spread(spreadOver(hostname, int32(d.between(1, 3)), labels))
		case 3:
			spread(spreadOver(zone, 1, labels), spreadOver(hostname, 2, labels))
		case 4:
			wish := spreadOver(zone, 1, labels)
			wish.WhenUnsatisfiable = corev1.ScheduleAnyway
			spread(wish)
		case 5:
			pod.Affinity = together(zone, labels)
		case 6:
			pod.Affinity = together(zone, app("service", d.IntN(number+1)))
		case 7:
			pod.Affinity = apart(hostname, labels)
		}
		left -= max(pod.Replicas, 1)
		pods = append(pods, pod)
	}
	return onCatalogue(pods, generalPool(anyCapacity))
}

// pools offers five pools. The preferred ones have limits that bind; the last
// takes every pod, so that all of them can be placed.
func pools(d dice, count int) *scenario.Scenario {
	dedicated := func(value string) corev1.Taint { return noSchedule("dedicated", value) }
	limited := func(pool scenario.NodePool, weight int32, cpus int, taints ...corev1.Taint) scenario.NodePool {
		pool.Weight, pool.Taints, pool.Limits = weight, taints, scenario.Resources{"cpu": fmt.Sprint(max(cpus, 64))}
		pool.Labels = map[string]string{"team": pool.Name}
		return pool
	}
	newer := scenario.Requirement{Key: instance + "generation", Operator: "Gte", Values: []string{"6"}}
	nodePools := []scenario.NodePool{
		limited(linuxPool("batch", "amd64 arm64", "cm", currentGeneration, spot), 50, count/10, dedicated("batch")),
		limited(linuxPool("graviton", "arm64", "cmr", newer, anyCapacity), 40, count/8),
		limited(linuxPool("intel", "amd64", "cmr", newer, onDemand, requireIn(instance+"cpu-manufacturer", "intel")), 30, count/10),
		limited(linuxPool("memory", "amd64 arm64", "r", currentGeneration, anyCapacity), 20, count, dedicated("memory")),
		linuxPool("rest", "amd64 arm64", "cmr", currentGeneration, anyCapacity),
	}
	pods := make([]scenario.Pod, count)
	for i := range pods {
		asked := drawSize(d)
		pod := scenario.Pod{Name: numbered("job", i), Labels: app("job", d.IntN(40)), Requests: asked.requests()}
		switch d.weighted(35, 20, 15, 20, 10) {
		case 1:
			pod.NodeSelector = map[string]string{corev1.LabelArchStable: "amd64"}
		case 2:
			pod.NodeSelector = map[string]string{corev1.LabelArchStable: "arm64"}
		case 3:
			pod.Tolerations = []corev1.Toleration{tolerate(dedicated("batch"))}
		case 4:
			pod.Tolerations = []corev1.Toleration{tolerate(dedicated("memory"))}
			pod.NodeSelector = map[string]string{"team": "memory"}
			pod.Requests = size{asked.cpuMilli, 8 * asked.cpuMilli}.requests()
		}
		pods[i] = pod
	}
	return onCatalogue(pods, nodePools...)
}

// shapes has four hundred kinds of pod, hardly two alike: 20m to 12 CPUs and half
// a GiB to 14 GiB for each CPU, small ones and the first ones more often.
func shapes(d dice, count int) *scenario.Scenario {
	kinds, weights := make([]scenario.Pod, 400), make([]int, 400)
	for i := range kinds {
		cpu := d.between(20, oneOf(d, 100, 250, 500, 500, 1000, 1000, 2000, 4000, 12000))
		perCPU := d.between(512, oneOf(d, 1024, 2048, 4096, 8192, 14336))
		kinds[i] = scenario.Pod{Labels: app("shape", i), Requests: size{cpu, max(cpu*perCPU/1000, 16)}.requests()}
		if d.IntN(8) == 0 {
			kinds[i].Requests["ephemeral-storage"] = fmt.Sprintf("%dMi", d.between(64, 4096))
		}
		weights[i] = 1 + 4000/(i+10)
	}
	pods := make([]scenario.Pod, count)
	for i := range pods {
		pods[i] = kinds[d.weighted(weights...)]
		pods[i].Name = numbered("pod", i)
	}
	return onCatalogue(pods, generalPool(anyCapacity))
}

// selectors has pods that choose among machines, each in its own way.
func selectors(d dice, count int) *scenario.Scenario {
	generation, machineFamily := instance+"generation", instance+"family"
	choose := []func(*scenario.Pod){
		func(*scenario.Pod) {},
		func(p *scenario.Pod) { p.NodeSelector = map[string]string{corev1.LabelArchStable: "arm64"} },
		func(p *scenario.Pod) {
			p.Affinity = nodesWith(expression(generation, corev1.NodeSelectorOpGt, oneOf(d, "5", "6")))
		},
		func(p *scenario.Pod) {
			p.Affinity = nodesWith(expression(machineFamily, corev1.NodeSelectorOpIn, "c6i", "c7i", "m6i", "m7i"))
		},
		func(p *scenario.Pod) {
			p.Affinity = nodesWith(
				expression(machineFamily, corev1.NodeSelectorOpNotIn, oneOf(d, "c5a", "c6a", "c7a"), oneOf(d, "m5a", "m6a", "m7a"), oneOf(d, "r5a", "r6a", "r7a")),
				expression(corev1.LabelArchStable, corev1.NodeSelectorOpIn, "amd64"))
		},
		func(p *scenario.Pod) {
			p.Affinity = nodesWith(expression(instance+"cpu", corev1.NodeSelectorOpLt, "17"), expression(corev1.LabelArchStable, corev1.NodeSelectorOpNotIn, "arm64"))
		},
		func(p *scenario.Pod) {
			p.NodeSelector = map[string]string{zone: oneOf(d, zones...), capacityType: "on-demand"}
		},
		func(p *scenario.Pod) {
			p.Affinity = nodesWith(expression(instance+"local-nvme", corev1.NodeSelectorOpGt, "100"))
		},
	}
	pods := make([]scenario.Pod, count)
	for i := range pods {
		pods[i] = scenario.Pod{Name: numbered("svc", i), Labels: app("svc", d.IntN(60)), Requests: drawSize(d).requests()}
		choose[d.weighted(25, 10, 15, 15, 15, 10, 5, 5)](&pods[i])
	}
	return onCatalogue(pods, linuxPool("any", "amd64 arm64", "cimrt", anyCapacity))
}

// priorities asks for about twice the CPUs that the limit of the pool allows.
func priorities(d dice, count int) *scenario.Scenario {
	pool := generalPool(anyCapacity)
	pool.Limits = scenario.Resources{"cpu": fmt.Sprint(max(count*380/1000, 8))}
	pods := services(d, count)
	for i := range pods {
		priority := []int32{0, 100, 1000, 100000}[d.weighted(50, 25, 15, 10)]
		pods[i].Priority = &priority
	}
	return onCatalogue(pods, pool)
}
