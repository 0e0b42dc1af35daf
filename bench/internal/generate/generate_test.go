package generate

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"karpenter-bench/internal/scenario"
)

// sample names one small scenario of each family.
func sample() []string {
	var names []string
	for _, f := range families {
		names = append(names, f.name(60))
	}
	return names
}

func encode(t *testing.T, name string, seed uint64) []byte {
	t.Helper()
	made, err := Make(name, seed)
	if err != nil {
		t.Fatal(err)
	}
	text, err := made.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestNameAndSeedDecideEveryByte(t *testing.T) {
	for _, name := range sample() {
		first := encode(t, name, 1)
		if !bytes.Equal(first, encode(t, name, 1)) {
			t.Errorf("%s: two answers for one seed", name)
		}
		if bytes.Equal(first[100:], encode(t, name, 2)[100:]) && name != "ec2-homogeneous-60" {
			t.Errorf("%s: one answer for two seeds", name)
		}
	}
}

func TestWhatIsWrittenCanBeRead(t *testing.T) {
	for _, name := range sample() {
		text := encode(t, name, 42)
		path := filepath.Join(t.TempDir(), "scenario.json")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		loaded, err := scenario.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		again, err := loaded.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(text, again) {
			t.Errorf("%s: reading and writing changes it", name)
		}
	}
}

func TestSizesAreAsNamed(t *testing.T) {
	for name, want := range map[string][2]int{ // nodes, pending pods
		"diverse-63":         {0, 63},
		"ec2-homogeneous-60": {0, 60},
		"ec2-gpu-60":         {0, 180},
		"ec2-zonal-60":       {0, 60},
		"existing-60":        {60, 30},
		"existing-60-mixed":  {60, 60},
	} {
		made, err := Make(name, 42)
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]int{len(made.Nodes), scenario.Count(made.Pods)}; got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

func TestSelect(t *testing.T) {
	for pattern, want := range map[string]int{"*": len(Suite()), "ec2-mixed-*": 4, "diverse-7": 1, "diverse": 0, "diverse-": 0, "existing--1": 0} {
		names, err := Select(pattern)
		if len(names) != want || (err == nil) != (want > 0) {
			t.Errorf("%s: got %v, %v", pattern, names, err)
		}
	}
}

func TestDaemonsTakeWhatFreeSaysTheyTake(t *testing.T) {
	left := size{100000, 100000}
	for _, daemon := range []size{{50, 64}, {100, 128}, {100, 200}} {
		left = size{left.cpuMilli - daemon.cpuMilli, left.memoryMi - daemon.memoryMi}
	}
	free, pods := machine{allocatable: size{100000, 100000}, pods: 10}.free()
	if free != left || pods != 10-len(daemons()) {
		t.Errorf("got %v and %d pods, want %v", free, pods, left)
	}
}
