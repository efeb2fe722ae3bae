package k8s

import (
	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// Quiet keeps the client library from writing to the standard error of this process:
// what it has to say comes as errors, and is told as the program tells things.
func Quiet() { klog.SetLogger(logr.Discard()) }
