// Coredns is CoreDNS with the plugins that a test cluster needs: names of
// Services and of pods, and nothing from outside.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/template"
)

func main() {
	// A plugin that is not in this list is not looked for in the Corefile.
	dnsserver.Directives = []string{"bind", "errors", "template", "kubernetes"}
	coremain.Run()
}
