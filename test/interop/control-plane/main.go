// A Kubernetes control plane in one program: etcd, kube-apiserver, kube-controller-manager and kube-scheduler with their own
// unmodified commands. The first argument says which of them this process is; the rest are its flags.
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func commands() map[string]func() int {
	kubernetes := func(command func() *cobra.Command) func() int {
		return func() int { return cli.Run(command()) }
	}
	return map[string]func() int{
		"etcd": func() int {
			etcdmain.Main(os.Args)
			return 0
		},
		"kube-apiserver":          kubernetes(apiserver.NewAPIServerCommand),
		"kube-controller-manager": kubernetes(controllermanager.NewControllerManagerCommand),
		"kube-scheduler":          kubernetes(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	}
}

func main() {
	known := commands()
	if len(os.Args) < 2 || known[os.Args[1]] == nil {
		names := make([]string, 0, len(known))
		for name := range known {
			names = append(names, name)
		}
		sort.Strings(names)
		fmt.Fprintf(os.Stderr, "usage: control-plane <%s> [flags]\n", strings.Join(names, "|"))
		os.Exit(64)
	}
	run := known[os.Args[1]]
	os.Args = os.Args[1:]
	os.Exit(run())
}
