package generate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter-bench/internal/scenario"
)

const (
	hostname = corev1.LabelHostname
	zone     = corev1.LabelTopologyZone
)

// size is what a pod asks for.
type size struct{ cpuMilli, memoryMi int }

func (s size) requests() scenario.Resources {
	return scenario.Resources{"cpu": fmt.Sprintf("%dm", s.cpuMilli), "memory": fmt.Sprintf("%dMi", s.memoryMi)}
}

// serviceSizes are those of a cluster of services, most of them small.
var serviceSizes = []size{
	{50, 128}, {100, 256}, {250, 512}, {500, 512}, {500, 1024}, {500, 4096},
	{1000, 2048}, {1000, 8192}, {2000, 4096}, {2000, 16384}, {4000, 8192}, {7500, 30720},
}

// drawSize draws one of them; the mean is 0.76 CPU.
func drawSize(d dice) size {
	return serviceSizes[d.weighted(14, 18, 16, 8, 12, 5, 10, 4, 6, 2, 3, 2)]
}

func numbered(prefix string, number int) string { return fmt.Sprintf("%s-%05d", prefix, number) }

func app(prefix string, number int) map[string]string {
	return map[string]string{"app": fmt.Sprintf("%s-%d", prefix, number)}
}

func spreadOver(key string, skew int32, selected map[string]string) corev1.TopologySpreadConstraint {
	return corev1.TopologySpreadConstraint{
		MaxSkew: skew, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector: &metav1.LabelSelector{MatchLabels: selected},
	}
}

func podTerm(key string, selected map[string]string) []corev1.PodAffinityTerm {
	return []corev1.PodAffinityTerm{{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: selected}}}
}

func together(key string, selected map[string]string) *corev1.Affinity {
	return &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: podTerm(key, selected)}}
}

func apart(key string, selected map[string]string) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: podTerm(key, selected)}}
}

// nodesWith asks for nodes that meet all of the expressions.
func nodesWith(expressions ...corev1.NodeSelectorRequirement) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: expressions}},
	}}}
}

func expression(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: operator, Values: values}
}

func noSchedule(key, value string) corev1.Taint {
	return corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffectNoSchedule}
}

func tolerate(taint corev1.Taint) corev1.Toleration {
	return corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpEqual, Value: taint.Value, Effect: taint.Effect}
}
