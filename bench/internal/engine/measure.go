package engine

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"syscall"
	"time"
)

const karpenterModule = "sigs.k8s.io/karpenter"

// peerOf reads the version of the scheduler from the running program.
func peerOf(workers int) Peer {
	out := Peer{Module: karpenterModule, Version: "unknown", Go: runtime.Version(), GOMAXPROCS: runtime.GOMAXPROCS(0), Workers: workers}
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, module := range build.Deps {
			if module.Path == karpenterModule {
				out.Version = module.Version
			}
		}
	}
	return out
}

// clocked runs the work and adds the time it took to the samples.
func clocked(samples *Samples, work func()) time.Duration {
	start := time.Now()
	work()
	elapsed := time.Since(start)
	samples.add(elapsed)
	return elapsed
}

// processorTime is what all threads of this process have used, the garbage
// collector's included.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func heapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// weighed runs the work while looking at the heap every two milliseconds.
func weighed(work func()) *Memory {
	runtime.GC()
	runtime.GC() // the second run frees what finalizers kept
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	base := heapBytes()
	stop, peak := make(chan struct{}), make(chan uint64)
	go func() {
		highest, tick := base, time.NewTicker(2*time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				highest = max(highest, heapBytes())
			case <-stop:
				peak <- max(highest, heapBytes())
				return
			}
		}
	}()
	work()
	close(stop)
	highest := <-peak
	runtime.ReadMemStats(&after)
	return &Memory{
		AllocBytes:    after.TotalAlloc - before.TotalAlloc,
		Mallocs:       after.Mallocs - before.Mallocs,
		BaseHeapBytes: base,
		PeakHeapBytes: highest,
		GCCycles:      after.NumGC - before.NumGC,
	}
}
