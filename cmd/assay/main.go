// Command assay builds a manifest of workloads, runs it and gives an honest
// verdict on what ran.
package main

import (
	"os"

	"assay/pkg/cli"
)

// version is set when the binary is linked.
var version = "dev"

func main() { os.Exit(cli.Main(cli.System(version), os.Args[1:])) }
