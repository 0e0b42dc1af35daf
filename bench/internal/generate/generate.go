// Package generate makes the scenarios of the comparison. A scenario is a pure
// function of its name and a seed: the same pair gives the same bytes anywhere.
// That is why products are converted to float64 before they are added: without
// it, some processors would fuse the two steps and round once instead of twice.
package generate

import (
	"fmt"
	"path"

	"karpenter-bench/internal/scenario"
)

// family makes scenarios of one kind in any size.
type family struct {
	pattern string // name of the scenario, %d being the size
	sizes   []int  // sizes of the standard suite
	about   string
	build   func(d dice, size int) *scenario.Scenario
}

var families = []family{
	{"diverse-%d", []int{1, 50, 100, 500, 1000, 5000, 10000, 20000, 100000}, "the pod mix of the Go scheduler's own benchmark, 400 linear types", diverse},
	{"ec2-homogeneous-%d", []int{1000, 5000}, "equal pods of 1 CPU and 2Gi, spot and on-demand", homogeneous},
	{"ec2-mixed-%d", []int{1000, 5000}, "pods of 12 sizes, spot and on-demand", mixed},
	{"ec2-mixed-od-%d", []int{5000}, "pods of 12 sizes, on-demand only", mixedOnDemand},
	{"ec2-mixed-capped-%d", []int{5000}, "pods of 12 sizes, no machine above 32 CPUs", mixedCapped},
	{"ec2-gpu-%d", []int{500}, "GPU pods and twice as many helpers, a tainted GPU pool", gpu},
	{"ec2-zonal-%d", []int{2000}, "services spread over zones and hosts or drawn together in one", zonal},
	{"ec2-pools-%d", []int{3000}, "five pools with weights, taints, limits and two architectures", pools},
	{"ec2-shapes-%d", []int{3000}, "four hundred different request shapes", shapes},
	{"ec2-selectors-%d", []int{3000}, "node affinity on family, generation, architecture, size, zone and disk", selectors},
	{"ec2-priority-%d", []int{2000}, "four priorities under a limit that holds half of the CPUs asked for", priorities},
	{"existing-%d", []int{2000}, "that many nodes, 93% to 100% full, half as many pending pods", existingFull},
	{"existing-%d-mixed", []int{1000}, "nodes of many kinds, some tainted or foreign, as many pending pods", existingMixed},
}

func (f family) name(size int) string { return fmt.Sprintf(f.pattern, size) }

// Entry is a scenario of the standard suite.
type Entry struct{ Name, About string }

// Suite lists the standard scenarios.
func Suite() []Entry {
	var suite []Entry
	for _, f := range families {
		for _, size := range f.sizes {
			suite = append(suite, Entry{f.name(size), f.about})
		}
	}
	return suite
}

// Select names the standard scenarios that match a shell pattern. A pattern that
// matches none may still be the name of a scenario in a size of its own.
func Select(pattern string) ([]string, error) {
	var names []string
	for _, entry := range Suite() {
		matched, err := path.Match(pattern, entry.Name)
		if err != nil {
			return nil, fmt.Errorf("pattern %q: %w", pattern, err)
		}
		if matched {
			names = append(names, entry.Name)
		}
	}
	if len(names) > 0 {
		return names, nil
	}
	if _, _, err := find(pattern); err != nil {
		return nil, err
	}
	return []string{pattern}, nil
}

// Make builds the scenario with this name.
func Make(name string, seed uint64) (*scenario.Scenario, error) {
	f, size, err := find(name)
	if err != nil {
		return nil, err
	}
	made := f.build(diceFor(name, seed), size)
	made.Version, made.Name, made.Description, made.Seed = scenario.Version, name, f.about, seed
	return made, nil
}

func find(name string) (family, int, error) {
	for _, f := range families {
		size := 0
		if _, err := fmt.Sscanf(name, f.pattern, &size); err == nil && size > 0 && f.name(size) == name {
			return f, size, nil
		}
	}
	return family{}, 0, fmt.Errorf("no scenario is called %q", name)
}
