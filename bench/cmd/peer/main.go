// Command peer runs the Go scheduler of Karpenter on scenario files and prints,
// for each, what it took and what it decided: one JSON object per line.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"karpenter-bench/internal/engine"
	"karpenter-bench/internal/scenario"
)

func main() {
	var config engine.Config
	flag.IntVar(&config.Runs, "runs", 5, "timed scheduling loops")
	flag.IntVar(&config.Workers, "workers", 1, "threads inside a solve; a default deployment has 1")
	flag.DurationVar(&config.Timeout, "timeout", 0, "stop a solve after this time, as production does after 1m; 0 is never")
	flag.BoolVar(&config.Memory, "memory", true, "go through one more loop, untimed, to weigh the heap")
	detail := flag.Bool("detail", true, "print every claim and every placement")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: peer [-runs N] [-workers N] [-detail=false] [-memory=false] [-timeout D] FILE...")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 || config.Runs < 1 || config.Workers < 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(config, *detail, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

// run gives every file a process of its own, so that neither the heap nor the
// globals of the scheduler pass from one scenario to the next.
func run(config engine.Config, detail bool, files []string) error {
	if len(files) == 1 {
		return report(config, detail, files[0])
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	flags := os.Args[1 : len(os.Args)-len(files)]
	var failed []error
	for _, file := range files {
		child := exec.Command(self, append(flags[:len(flags):len(flags)], file)...)
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Run(); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", file, err))
		}
	}
	return errors.Join(failed...)
}

func report(config engine.Config, detail bool, file string) error {
	loaded, err := scenario.Load(file)
	if err != nil {
		return err
	}
	solved, err := engine.Solve(loaded, config)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if !detail {
		solved.Result.Claims, solved.Result.Existing = nil, nil
	}
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(struct {
		MaxRSSBytes int64          `json:"maxRSSBytes"`
		Report      *engine.Report `json:"report"`
	}{usage.Maxrss * 1024, solved}) // Linux counts the resident set in KiB
}
