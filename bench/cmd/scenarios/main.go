// Command scenarios writes the scenario files of the comparison.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"karpenter-bench/internal/generate"
)

func main() {
	out := flag.String("out", "", "folder to write to")
	seed := flag.Uint64("seed", 42, "another seed gives other scenarios of the same kinds")
	list := flag.Bool("list", false, "print the standard scenarios and stop")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: scenarios -out DIR [-seed N] [-list] [PATTERN...]")
		flag.PrintDefaults()
	}
	flag.Parse()
	if *list {
		for _, entry := range generate.Suite() {
			fmt.Printf("%-22s %s\n", entry.Name, entry.About)
		}
		return
	}
	if err := write(*out, *seed, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "scenarios:", err)
		os.Exit(1)
	}
}

func write(folder string, seed uint64, patterns []string) error {
	if folder == "" {
		return fmt.Errorf("-out is missing")
	}
	if len(patterns) == 0 {
		patterns = []string{"*"}
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, pattern := range patterns {
		names, err := generate.Select(pattern)
		if err != nil {
			return err
		}
		for _, name := range names {
			made, err := generate.Make(name, seed)
			if err != nil {
				return err
			}
			text, err := made.Encode()
			if err != nil {
				return err
			}
			path := filepath.Join(folder, name+".json")
			if err := os.WriteFile(path, text, 0o644); err != nil {
				return err
			}
			fmt.Println(path)
		}
	}
	return nil
}
