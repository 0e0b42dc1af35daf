// Package engine runs the scheduler of sigs.k8s.io/karpenter on a scenario: the
// steps that its provisioner takes for each batch of pods, on objects in memory.
package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/operator/options"

	"karpenter-bench/internal/scenario"
)

// Config says how to run the scheduler.
type Config struct {
	Runs    int           // at least 1
	Workers int           // threads that look for a place for one pod
	Timeout time.Duration // of a solve; 0 is none
	Memory  bool          // weigh one more loop, which is not timed
}

// Solve plans the pending pods of a scenario. Call it once in a process: the
// scheduler has globals that one scenario would leave to the next.
func Solve(in *scenario.Scenario, config Config) (*Report, error) {
	built, err := newCluster(in, config.Workers)
	if err != nil {
		return nil, err
	}
	report := &Report{Peer: peerOf(config.Workers), Scenario: sizeOf(in), Runs: config.Runs}
	results := make([]*Result, config.Runs)
	for i := range results {
		if results[i], err = built.loop(config, &report.Timing); err != nil {
			return nil, err
		}
	}
	report.Result = *results[0]
	report.Spread = Extremes{
		NewNodeClaims: rangeOf(results, func(r *Result) float64 { return float64(r.NewNodeClaims) }),
		PricePerHour:  rangeOf(results, func(r *Result) float64 { return r.PricePerHour }),
		PodErrors:     rangeOf(results, func(r *Result) float64 { return float64(r.PodErrorCount) }),
	}
	if median := report.Timing.Solve.median(); median > 0 {
		report.Timing.PodsPerSecond = float64(report.Scenario.Pods) / median * 1000
	}
	if config.Memory {
		err = built.weigh(config, report)
	}
	return report, err
}

// loop is one scheduling loop, timed.
func (c *cluster) loop(config Config, timing *Timing) (*Result, error) {
	var total time.Duration
	runtime.GC()
	batch, err := c.prepare(config.Workers, timing, &total)
	if err != nil {
		return nil, err
	}
	runtime.GC()
	var answer scheduling.Results
	busy := processorTime()
	total += clocked(&timing.Solve, func() { answer, err = batch.solve(c.ctx, config.Timeout) })
	timing.SolveCPU.add(processorTime() - busy)
	timedOut := errors.Is(err, context.DeadlineExceeded)
	if err != nil && !timedOut {
		return nil, err
	}
	total += clocked(&timing.Truncate, func() { answer = answer.TruncateInstanceTypes(c.ctx, scheduling.MaxInstanceTypes) })
	timing.Total.add(total)
	result, err := read(answer)
	if err != nil {
		return nil, err
	}
	result.TimedOut = timedOut
	return result, nil
}

// weigh goes through a loop once more for its memory.
func (c *cluster) weigh(config Config, report *Report) error {
	var batch *batch
	var err error
	report.Setup = weighed(func() {
		var elapsed time.Duration
		batch, err = c.prepare(config.Workers, &Timing{}, &elapsed)
	})
	if err != nil {
		return err
	}
	report.Memory = weighed(func() { _, err = batch.solve(c.ctx, config.Timeout) })
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// batch is a scheduler and the pods it is for.
type batch struct {
	scheduler *scheduling.Scheduler
	pods      []*corev1.Pod
}

// prepare makes a scheduler. The pods are copies, since solving changes them.
func (c *cluster) prepare(workers int, timing *Timing, total *time.Duration) (*batch, error) {
	pods, daemons := copies(c.pending), copies(c.daemons)
	settings := options.FromContext(c.ctx)
	choices := []scheduling.Options{scheduling.NumConcurrentReconciles(workers), scheduling.MinValuesPolicy(settings.MinValuesPolicy)}
	if settings.PreferencePolicy == options.PreferencePolicyIgnore {
		choices = append(choices, scheduling.IgnorePreferences)
	}
	var nodes state.StateNodes
	*total += clocked(&timing.CopyNodes, func() { nodes = c.state.DeepCopyNodes().Active() })
	var topology *scheduling.Topology
	var err error
	*total += clocked(&timing.Topology, func() {
		topology, err = scheduling.NewTopology(c.ctx, c.store, c.state, nodes, c.pools, c.byPool, pods, choices...)
	})
	if err != nil {
		return nil, fmt.Errorf("counting topology: %w", err)
	}
	var scheduler *scheduling.Scheduler
	*total += clocked(&timing.Scheduler, func() {
		scheduler = scheduling.NewScheduler(c.ctx, c.store, c.pools, c.state, nodes, topology, c.byPool, daemons,
			silent{}, clock.RealClock{}, nil, nil, choices...)
	})
	return &batch{scheduler, pods}, nil
}

func (b *batch) solve(ctx context.Context, timeout time.Duration) (scheduling.Results, error) {
	if timeout > 0 {
		limited, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		ctx = limited
	}
	return b.scheduler.Solve(ctx, b.pods)
}

func copies(pods []*corev1.Pod) []*corev1.Pod {
	out := make([]*corev1.Pod, len(pods))
	for i, pod := range pods {
		out[i] = pod.DeepCopy()
	}
	return out
}
