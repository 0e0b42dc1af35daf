package scenario

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"os"
)

// Load reads a scenario file. A field that the format does not know is an
// error, because a scheduler that skipped it would solve another problem.
func Load(path string) (*Scenario, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	decoder := json.NewDecoder(file)
	decoder.DisallowUnknownFields()
	loaded := new(Scenario)
	if err := decoder.Decode(loaded); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if loaded.Version != Version {
		return nil, fmt.Errorf("%s: format version %d, this program knows %d", path, loaded.Version, Version)
	}
	return loaded, nil
}

// Encode renders the scenario with one machine, pool, node or pod per line.
func (s *Scenario) Encode() ([]byte, error) {
	head := *s
	head.InstanceTypes, head.NodePools, head.DaemonSets, head.Nodes, head.Pods = nil, nil, nil, nil, nil
	text, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	out := bytes.NewBuffer(bytes.TrimSuffix(text, []byte("}")))
	for _, err := range []error{
		appendList(out, "instanceTypes", s.InstanceTypes),
		appendList(out, "nodePools", s.NodePools),
		appendList(out, "daemonSets", s.DaemonSets),
		appendList(out, "nodes", s.Nodes),
		appendList(out, "pods", s.Pods),
	} {
		if err != nil {
			return nil, err
		}
	}
	out.WriteString("\n}\n")
	return out.Bytes(), nil
}

func appendList[T any](out *bytes.Buffer, key string, items []T) error {
	fmt.Fprintf(out, ",\n%q:[", key)
	separator := "\n"
	for _, item := range items {
		text, err := json.Marshal(item)
		if err != nil {
			return err
		}
		out.WriteString(separator)
		out.Write(text)
		separator = ",\n"
	}
	out.WriteString("]")
	return nil
}

// Single yields every pod of a list by itself: an entry with n replicas stands
// for n pods named after it and numbered from 0.
func Single(pods []Pod) iter.Seq[Pod] {
	return func(yield func(Pod) bool) {
		for _, pod := range pods {
			count, name := pod.Replicas, pod.Name
			pod.Replicas = 0
			if count <= 1 {
				if !yield(pod) {
					return
				}
				continue
			}
			for i := range count {
				pod.Name = fmt.Sprintf("%s-%d", name, i)
				if !yield(pod) {
					return
				}
			}
		}
	}
}

// Count is the number of pods that Single yields.
func Count(pods []Pod) int {
	count := 0
	for _, pod := range pods {
		count += max(pod.Replicas, 1)
	}
	return count
}
