package generate

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"karpenter-bench/internal/scenario"
)

//go:embed ec2.csv
var factsTable string

const (
	instance     = "karpenter.k8s.aws/instance-" // prefix of the labels of an EC2 machine
	capacityType = "karpenter.sh/capacity-type"
	gpuResource  = "nvidia.com/gpu"
	rootVolumeMi = 20 * 1024
)

var zones = []string{"us-east-1a", "us-east-1b", "us-east-1c"}

// machine is an EC2 type with what it offers to pods.
type machine struct {
	scenario.InstanceType
	allocatable size
	pods        int
}

// machines is the catalogue: shapes and on-demand prices are facts, spot prices
// and the zones without spot capacity are made up from a hash.
var machines = sync.OnceValue(func() []machine {
	rows, err := csv.NewReader(strings.NewReader(factsTable)).ReadAll()
	if err != nil {
		panic(err) // the table is part of the program
	}
	var all []machine
	for _, row := range rows[1:] {
		all = append(all, newMachine(facts{rows[0], row}))
	}
	return all
})

// machineNamed finds a type of the catalogue; the name is one of this package.
func machineNamed(name string) machine {
	all := machines()
	return all[slices.IndexFunc(all, func(m machine) bool { return m.Name == name })]
}

// facts is a row of the table under its header.
type facts struct{ header, row []string }

func (f facts) text(column string) string { return f.row[slices.Index(f.header, column)] }

func (f facts) number(column string) float64 {
	value, err := strconv.ParseFloat(f.text(column), 64)
	if err != nil {
		panic(err)
	}
	return value
}

func (f facts) count(column string) int { return int(f.number(column)) }

func newMachine(f facts) machine {
	cpus, memory := f.count("vcpu"), f.count("memory_mib")
	free := size{f.count("alloc_cpu_m"), f.count("alloc_memory_mib")}
	overhead := size{cpus*1000 - free.cpuMilli, memory - free.memoryMi}.requests()
	overhead["ephemeral-storage"] = fmt.Sprintf("%dMi", rootVolumeMi-f.count("alloc_ephemeral_mib"))
	made := scenario.InstanceType{
		Name: f.text("name"),
		Capacity: scenario.Resources{
			"cpu": fmt.Sprint(cpus), "memory": fmt.Sprintf("%dMi", memory),
			"ephemeral-storage": fmt.Sprintf("%dMi", rootVolumeMi), "pods": f.text("pods"),
		},
		Overhead: overhead,
		Labels: map[string]string{
			corev1.LabelArchStable: f.text("arch"), corev1.LabelOSStable: "linux",
			instance + "cpu": fmt.Sprint(cpus), instance + "memory": fmt.Sprint(memory),
		},
		Offerings: offerings(f.text("name"), f.number("price")),
	}
	for label, column := range map[string]string{
		"category": "category", "family": "family", "generation": "generation", "size": "size",
		"hypervisor": "hypervisor", "cpu-manufacturer": "cpu_manufacturer",
	} {
		made.Labels[instance+label] = f.text(column)
	}
	gpus := f.text("gpu")
	if gpus == "0" {
		gpus = ""
	} else {
		made.Capacity[gpuResource] = gpus
	}
	for _, optional := range [][2]string{{"gpu-count", gpus}, {"gpu-name", f.text("gpu_name")}, {"local-nvme", f.text("local_nvme")}} {
		if key, value := instance+optional[0], optional[1]; value != "" {
			made.Labels[key] = value
		} else {
			made.Requirements = append(made.Requirements, scenario.Requirement{Key: key, Operator: "DoesNotExist"})
		}
	}
	return machine{made, free, f.count("pods")}
}

// offerings prices a type in every zone: spot costs 28% to 62% of on-demand, by
// type and a little by zone, and one offering in twenty is sold out.
func offerings(name string, price float64) []scenario.Offering {
	var out []scenario.Offering
	for _, zone := range zones {
		share := 0.28 + float64(0.30*fraction(name)) + float64(0.04*fraction(name+zone))
		out = append(out,
			scenario.Offering{Zone: zone, CapacityType: "on-demand", Price: price, Available: true},
			scenario.Offering{Zone: zone, CapacityType: "spot", Price: math.Round(price*share*1e6) / 1e6, Available: fraction(zone+name) >= 0.05})
	}
	return out
}

// daemons run on every node.
func daemons() []scenario.Pod {
	var out []scenario.Pod
	for _, daemon := range []struct {
		name string
		size size
	}{{"network", size{50, 64}}, {"proxy", size{100, 128}}, {"logs", size{100, 200}}} {
		out = append(out, scenario.Pod{
			Name: daemon.name, Namespace: "kube-system", Owner: "DaemonSet", Requests: daemon.size.requests(),
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		})
	}
	return out
}

// free is what the daemons leave of a node of this type.
func (m machine) free() (size, int) {
	return size{m.allocatable.cpuMilli - 250, m.allocatable.memoryMi - 392}, m.pods - 3
}

func requireIn(key string, values ...string) scenario.Requirement {
	return scenario.Requirement{Key: key, Operator: "In", Values: values}
}

// linuxPool is a pool of Linux machines of some EC2 categories, one letter each.
func linuxPool(name, architecture, categories string, more ...scenario.Requirement) scenario.NodePool {
	return scenario.NodePool{Name: name, Requirements: append([]scenario.Requirement{
		requireIn(corev1.LabelArchStable, strings.Fields(architecture)...),
		requireIn(corev1.LabelOSStable, "linux"),
		requireIn(instance+"category", strings.Split(categories, "")...),
	}, more...)}
}

var (
	currentGeneration = scenario.Requirement{Key: instance + "generation", Operator: "Gt", Values: []string{"4"}}
	anyCapacity       = requireIn(capacityType, "on-demand", "spot")
	onDemand          = requireIn(capacityType, "on-demand")
	spot              = requireIn(capacityType, "spot")
)

// generalPool is what most clusters start with.
func generalPool(capacity scenario.Requirement) scenario.NodePool {
	return linuxPool("general", "amd64", "cmr", currentGeneration, capacity)
}

// onCatalogue is a scenario on the EC2 catalogue.
func onCatalogue(pods []scenario.Pod, nodePools ...scenario.NodePool) *scenario.Scenario {
	made := &scenario.Scenario{NodePools: nodePools, DaemonSets: daemons(), Pods: pods}
	for _, m := range machines() {
		made.InstanceTypes = append(made.InstanceTypes, m.InstanceType)
	}
	for _, label := range []string{
		"category", "cpu", "cpu-manufacturer", "family", "generation", "gpu-count", "gpu-name",
		"hypervisor", "local-nvme", "memory", "size",
	} {
		made.WellKnownLabels = append(made.WellKnownLabels, instance+label)
	}
	return made
}
