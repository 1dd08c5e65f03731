// A CSI driver that costs as little as a driver can: a tmpfs at stage, a bind of it at publish, by mount(2), with no
// process. The bench gives the same one to the kubelet's volume manager and to Mooring. It registers itself and ends
// with its parent, whose end closes its standard input.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"log"
	"net"
	"os"
	"sync"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

type driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedNodeServer
	registerapi.UnimplementedRegistrationServer
	name     string
	endpoint string
	mutex    sync.Mutex
	// What is mounted where: a repeated call is answered and does nothing, as CSI demands.
	mounted map[string]bool
}

func (d *driver) mount(target string, act func() error) error {
	d.mutex.Lock()
	known := d.mounted[target]
	d.mutex.Unlock()
	if known {
		return nil
	}
	if err := act(); err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.mounted[target] = true
	return nil
}

func (d *driver) unmount(target string) error {
	d.mutex.Lock()
	known := d.mounted[target]
	d.mutex.Unlock()
	if !known {
		return nil
	}
	if err := syscall.Unmount(target, 0); err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	delete(d.mounted, target)
	return nil
}

func (d *driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: d.name, VendorVersion: "1.0.0"}, nil
}

func (d *driver) GetPluginCapabilities(
	context.Context, *csi.GetPluginCapabilitiesRequest,
) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{}, nil
}

func (d *driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

func (d *driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: "bench"}, nil
}

func (d *driver) NodeGetCapabilities(
	context.Context, *csi.NodeGetCapabilitiesRequest,
) (*csi.NodeGetCapabilitiesResponse, error) {
	stage := &csi.NodeServiceCapability_RPC{Type: csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME}
	return &csi.NodeGetCapabilitiesResponse{
		Capabilities: []*csi.NodeServiceCapability{{Type: &csi.NodeServiceCapability_Rpc{Rpc: stage}}},
	}, nil
}

func (d *driver) NodeStageVolume(
	_ context.Context, request *csi.NodeStageVolumeRequest,
) (*csi.NodeStageVolumeResponse, error) {
	target := request.GetStagingTargetPath()
	return &csi.NodeStageVolumeResponse{}, d.mount(target, func() error {
		return syscall.Mount("bench", target, "tmpfs", 0, "size=1m")
	})
}

func (d *driver) NodeUnstageVolume(
	_ context.Context, request *csi.NodeUnstageVolumeRequest,
) (*csi.NodeUnstageVolumeResponse, error) {
	return &csi.NodeUnstageVolumeResponse{}, d.unmount(request.GetStagingTargetPath())
}

func (d *driver) NodePublishVolume(
	_ context.Context, request *csi.NodePublishVolumeRequest,
) (*csi.NodePublishVolumeResponse, error) {
	target := request.GetTargetPath()
	return &csi.NodePublishVolumeResponse{}, d.mount(target, func() error {
		// CSI: the driver makes the target, the orchestrator its parent.
		if err := os.Mkdir(target, 0o750); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		return syscall.Mount(request.GetStagingTargetPath(), target, "", syscall.MS_BIND, "")
	})
}

func (d *driver) NodeUnpublishVolume(
	_ context.Context, request *csi.NodeUnpublishVolumeRequest,
) (*csi.NodeUnpublishVolumeResponse, error) {
	target := request.GetTargetPath()
	if err := d.unmount(target); err != nil {
		return nil, err
	}
	if err := os.Remove(target); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

func (d *driver) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{
		Type: registerapi.CSIPlugin, Name: d.name, Endpoint: d.endpoint, SupportedVersions: []string{"1.0.0"},
	}, nil
}

func (d *driver) NotifyRegistrationStatus(
	context.Context, *registerapi.RegistrationStatus,
) (*registerapi.RegistrationStatusResponse, error) {
	return &registerapi.RegistrationStatusResponse{}, nil
}

func serve(path string, register func(*grpc.Server)) {
	listener, err := net.Listen("unix", path)
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	register(server)
	go func() { log.Fatal(server.Serve(listener)) }()
}

func main() {
	name := flag.String("name", "", "the driver's name")
	endpoint := flag.String("endpoint", "", "the CSI socket")
	registration := flag.String("registration", "", "the registration socket")
	flag.Parse()
	served := &driver{name: *name, endpoint: *endpoint, mounted: map[string]bool{}}
	serve(*endpoint, func(server *grpc.Server) {
		csi.RegisterIdentityServer(server, served)
		csi.RegisterNodeServer(server, served)
	})
	serve(*registration, func(server *grpc.Server) { registerapi.RegisterRegistrationServer(server, served) })
	_, _ = io.Copy(io.Discard, os.Stdin)
}
