package generate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"karpenter-bench/internal/scenario"
)

func homogeneous(_ dice, count int) *scenario.Scenario {
	return onCatalogue([]scenario.Pod{{
		Name: "web", Replicas: count, Labels: map[string]string{"app": "web"}, Requests: size{1000, 2048}.requests(),
	}}, generalPool(anyCapacity))
}

func services(d dice, count int) []scenario.Pod {
	pods := make([]scenario.Pod, count)
	for i := range pods {
		requests := drawSize(d).requests()
		pods[i] = scenario.Pod{Name: numbered("svc", i), Labels: app("svc", d.IntN(50)), Requests: requests}
	}
	return pods
}

func mixed(d dice, count int) *scenario.Scenario {
	return onCatalogue(services(d, count), generalPool(anyCapacity))
}

func mixedOnDemand(d dice, count int) *scenario.Scenario {
	return onCatalogue(services(d, count), generalPool(onDemand))
}

// mixedCapped keeps machines small, as many do to lose less when one fails.
func mixedCapped(d dice, count int) *scenario.Scenario {
	pool := generalPool(anyCapacity)
	pool.Requirements = append(pool.Requirements, scenario.Requirement{Key: instance + "cpu", Operator: "Lt", Values: []string{"33"}})
	return onCatalogue(services(d, count), pool)
}

// gpu has pods with 1, 2, 4 or 8 GPUs, a quarter of them of a certain model, and
// helpers that the taint of the GPU pool keeps away.
func gpu(d dice, count int) *scenario.Scenario {
	taint := noSchedule(gpuResource, "true")
	tolerations := []corev1.Toleration{{Key: taint.Key, Operator: corev1.TolerationOpExists, Effect: taint.Effect}}
	var pods []scenario.Pod
	for i := range count {
		gpus := 1 << d.weighted(60, 15, 15, 10)
		pod := scenario.Pod{
			Name: fmt.Sprintf("train-%04d", i), Labels: map[string]string{"app": "train"}, Tolerations: tolerations,
			Requests: size{2000 * gpus, 8192 * gpus}.requests(),
		}
		pod.Requests[gpuResource] = fmt.Sprint(gpus)
		if d.IntN(4) == 0 {
			models := []string{"a10g", "l4", "l40s", "t4"}
			if gpus == 8 {
				models = models[:3] // eight T4s are only sold as bare metal
			}
			pod.NodeSelector = map[string]string{instance + "gpu-name": oneOf(d, models...)}
		}
		pods = append(pods, pod)
	}
	for i := range 2 * count {
		pods = append(pods, scenario.Pod{
			Name: fmt.Sprintf("helper-%04d", i), Labels: map[string]string{"app": "helper"}, Requests: drawSize(d).requests(),
		})
	}
	shuffle(d, pods)
	pool := linuxPool("gpu", "amd64", "gp", anyCapacity)
	pool.Weight, pool.Taints = 10, []corev1.Taint{taint}
	return onCatalogue(pods, pool, generalPool(anyCapacity))
}
