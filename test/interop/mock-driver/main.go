// The CSI mock driver of the Kubernetes end-to-end tests (k8s.io/kubernetes, test/e2e/storage/drivers/csi-test) as a
// process. The driver itself mounts nothing: it makes and removes directories through its DirIO seam. With --state that
// seam is given hands that mount, by the Kubernetes mount library; without it the driver is as it comes.
package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"k8s.io/kubernetes/test/e2e/storage/drivers/csi-test/driver"
	"k8s.io/kubernetes/test/e2e/storage/drivers/csi-test/mock/service"
)

func main() {
	endpoint := flag.String("endpoint", "", "unix:///PATH of the CSI socket")
	name := flag.String("name", service.Name, "the driver's name, and its node id")
	attach := flag.Bool("attach", false, "offer ControllerPublishVolume")
	expand := flag.Bool("expand", false, "offer NodeExpandVolume")
	condition := flag.Bool("condition", false, "offer VOLUME_CONDITION")
	mountGroup := flag.Bool("mount-group", false, "offer VOLUME_MOUNT_GROUP")
	state := flag.String("state", "", "a directory with one directory per volume, bound to the targets; empty: mount nothing")
	recordFile := flag.String("record", "", "where each call is written down, a JSON line each")
	flag.Parse()

	record, err := openRecord(*recordFile)
	if err != nil {
		log.Fatal(err)
	}
	config := service.Config{
		DriverName:                  *name,
		DisableAttach:               !*attach,
		NodeExpansionRequired:       *expand,
		NodeVolumeConditionRequired: *condition,
		VolumeMountGroupRequired:    *mountGroup,
	}
	hands := newHands(*state)
	if *state != "" {
		config.IO = hands
	}
	mock := service.New(config)

	path := strings.TrimPrefix(*endpoint, "unix://")
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		log.Fatal(err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		log.Fatal(err)
	}
	// From here on a connection is taken, whoever is first.
	fmt.Println("listening")
	server := driver.NewCSIDriver(&driver.CSIDriverServers{Controller: mock, Identity: mock, Node: mock})
	if err := server.Start(listener, intercept(record, hands)); err != nil {
		log.Fatal(err)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	<-stop
	server.Stop()
}
