//go:build tools

// Package tools names the program that plays the kubelets on the test control plane.
// It has a module of its own because its dependencies pin other Kubernetes versions.
package tools

import _ "sigs.k8s.io/kwok/cmd/kwok"
