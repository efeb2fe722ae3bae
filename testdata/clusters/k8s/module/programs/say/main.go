// Say is the only file of the image localhost/say: a workload in an image that
// has neither a shell nor a C library.
//
//	/say [-sleep DURATION] [-exit CODE] LINE…
//
// It prints every LINE, in which $NAME is a variable of its environment, waits,
// and exits with CODE.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	sleep := flag.Duration("sleep", 0, "how long to wait after the last line")
	code := flag.Int("exit", 0, "the exit code")
	flag.Parse()
	for _, line := range flag.Args() {
		fmt.Println(os.ExpandEnv(line))
	}
	time.Sleep(*sleep)
	os.Exit(*code)
}
