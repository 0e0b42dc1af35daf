package generate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"karpenter-bench/internal/scenario"
)

// team is the namespace of an application; twenty teams share a cluster.
func team(number int) string { return fmt.Sprintf("team-%02d", number%20) }

// runningNode is a node with its daemons and nothing else.
func runningNode(name, pool string, m machine, zone, capacity string) scenario.Node {
	node := scenario.Node{Name: name, NodePool: pool, InstanceType: m.Name, Zone: zone, CapacityType: capacity, Labels: m.Labels}
	for _, daemon := range daemons() {
		daemon.Name += "-" + name
		node.Pods = append(node.Pods, daemon)
	}
	return node
}

// existingFull is a large cluster with thirty pods on every node and so little
// room that most nodes refuse a pending pod before one takes it. Of the pending
// pods a fifth is spread over zones, a tenth over hosts, a tenth stays alone.
func existingFull(d dice, count int) *scenario.Scenario {
	const perNode, apps = 30, 60
	made := onCatalogue(nil, generalPool(anyCapacity))
	for i := range count {
		m := machineNamed(oneOf(d, "m5.4xlarge", "m6i.4xlarge", "m7i.4xlarge", "r6i.2xlarge", "c6i.8xlarge"))
		node := runningNode(numbered("node", i), "general", m, zones[i%len(zones)], "on-demand")
		room, _ := m.free()
		used, sum := 0.93+float64(0.07*d.Float64()), 0.0
		var parts [perNode]float64
		for j := range parts {
			parts[j] = 0.4 + d.Float64()
			sum += parts[j]
		}
		for j, part := range parts {
			share, number := used*part/sum, d.IntN(apps)
			asked := size{int(float64(room.cpuMilli) * share), int(float64(room.memoryMi) * share * 0.9)}
			node.Pods = append(node.Pods, scenario.Pod{
				Name: fmt.Sprintf("app-%d-%05d-%02d", number, i, j), Namespace: team(number), Labels: app("app", number),
				Requests: size{max(asked.cpuMilli, 10), max(asked.memoryMi, 16)}.requests(),
			})
		}
		made.Nodes = append(made.Nodes, node)
	}
	for i := range count / 2 {
		requests, number := drawSize(d).requests(), d.IntN(apps)
		pod := scenario.Pod{Name: numbered("pending", i), Namespace: team(number), Labels: app("app", number), Requests: requests}
		switch d.weighted(60, 20, 10, 10) {
		case 1:
			// What runs is not even, so a small skew could not be met.
			pod.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{spreadOver(zone, 100, pod.Labels)}
		case 2:
			pod.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{spreadOver(hostname, 5, pod.Labels)}
		case 3:
			pod.Labels = app("solo", number)
			pod.Affinity = apart(hostname, pod.Labels)
		}
		made.Pods = append(made.Pods, pod)
	}
	return made
}

var dedicatedBatch = noSchedule("dedicated", "batch")

// existingMixed is a grown cluster: four kinds of node in two architectures,
// most of them nearly full, and pending pods with every kind of wish.
func existingMixed(d dice, count int) *scenario.Scenario {
	made := onCatalogue(nil,
		generalPool(anyCapacity),
		linuxPool("graviton", "arm64", "cmr", currentGeneration, anyCapacity),
		batchPool())
	for i := range count {
		made.Nodes = append(made.Nodes, grownNode(d, i))
	}
	for i := range count {
		made.Pods = append(made.Pods, wishfulPod(d, i))
	}
	return made
}

func batchPool() scenario.NodePool {
	pool := linuxPool("batch", "amd64", "cm", currentGeneration, spot)
	pool.Taints = []corev1.Taint{dedicatedBatch}
	return pool
}

// grownNode is general, graviton, batch or foreign: of no pool at all.
func grownNode(d dice, number int) scenario.Node {
	name, where := numbered("node", number), oneOf(d, zones...)
	var node scenario.Node
	var m machine
	switch d.weighted(50, 25, 15, 10) {
	case 0:
		m = machineNamed(oneOf(d, "m5.2xlarge", "m6i.4xlarge", "m7i.xlarge", "c6a.8xlarge", "r6i.2xlarge", "c5.large"))
		node = runningNode(name, "general", m, where, oneOf(d, "on-demand", "spot"))
	case 1:
		m = machineNamed(oneOf(d, "m6g.2xlarge", "c7g.4xlarge", "r7g.xlarge", "m7g.8xlarge"))
		node = runningNode(name, "graviton", m, where, oneOf(d, "on-demand", "spot"))
	case 2:
		m = machineNamed(oneOf(d, "c6i.4xlarge", "m6a.4xlarge"))
		node = runningNode(name, "batch", m, where, "spot")
		node.Taints = []corev1.Taint{dedicatedBatch}
	case 3:
		m = machineNamed(oneOf(d, "m5.xlarge", "m5.4xlarge"))
		node = runningNode(name, "", m, where, "")
	}
	room, slots := m.free()
	spare := int(float64(room.cpuMilli) * oneOf(d, 0, 0, 0, 0.05, 0.4) * d.Float64())
	for misses := 0; misses < 8 && slots > 0; {
		asked := drawSize(d)
		if room.cpuMilli-asked.cpuMilli < spare || room.memoryMi < asked.memoryMi {
			misses++
			continue
		}
		room, slots = size{room.cpuMilli - asked.cpuMilli, room.memoryMi - asked.memoryMi}, slots-1
		node.Pods = append(node.Pods, boundPod(d, number, len(node.Pods), asked))
	}
	return node
}

// boundPod is one of eighty applications. One node in seven carries at most one
// pod that keeps others of its kind away.
func boundPod(d dice, node, position int, asked size) scenario.Pod {
	application := d.IntN(80)
	pod := scenario.Pod{
		Name: fmt.Sprintf("app-%d-%05d-%03d", application, node, position), Namespace: team(application),
		Labels: app("app", application), Requests: asked.requests(),
	}
	if position == len(daemons()) && node%7 == 0 {
		pod.Labels = app("solo", application%12)
		pod.Affinity = apart(hostname, pod.Labels)
	}
	return pod
}

func wishfulPod(d dice, number int) scenario.Pod {
	application := d.IntN(80)
	pod := scenario.Pod{
		Name: numbered("pending", number), Namespace: team(application), Labels: app("app", application), Requests: drawSize(d).requests(),
	}
	switch d.weighted(35, 12, 8, 8, 10, 10, 10, 7) {
	case 1:
		pod.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{spreadOver(zone, 50, pod.Labels)}
	case 2:
		pod.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{spreadOver(hostname, 4, pod.Labels)}
	case 3:
		pod.Labels = app("solo", application%12)
		pod.Affinity = apart(hostname, pod.Labels)
	case 4:
		pod.NodeSelector = map[string]string{corev1.LabelArchStable: "arm64"}
	case 5:
		pod.Tolerations = []corev1.Toleration{tolerate(dedicatedBatch)}
	case 6:
		pod.Affinity = nodesWith(
			expression(zone, corev1.NodeSelectorOpNotIn, oneOf(d, zones...)),
			expression(capacityType, corev1.NodeSelectorOpIn, "on-demand"))
	case 7:
		pod.HostPorts = []scenario.HostPort{{Port: int32(9000 + application%5)}}
	}
	return pod
}
