// The kubelet's own example plugin (k8s.io/kubernetes, pkg/kubelet/pluginmanager/pluginwatcher), unmodified: a
// stranger in plugins_registry. It serves no CSI, announces its own socket as the endpoint, says on standard error what
// it was told, and never answers NotifyRegistrationStatus (outside its own tests nobody reads what it waits on).
package main

import (
	"context"
	"flag"
	"log"

	"k8s.io/kubernetes/pkg/kubelet/pluginmanager/pluginwatcher"
)

func main() {
	name := flag.String("name", "", "the plugin's name")
	kind := flag.String("type", "DRAPlugin", "CSIPlugin, DevicePlugin or DRAPlugin")
	socket := flag.String("socket", "", "the registration socket")
	version := flag.String("version", "1.0.0", "the one it says it supports")
	flag.Parse()
	plugin := pluginwatcher.NewTestExamplePlugin(*name, *kind, *socket, *version)
	if err := plugin.Serve(context.Background(), "v1beta1", "v1beta2"); err != nil {
		log.Fatal(err)
	}
	select {}
}
