// A registrar of the kubelet's plugin-registration contract, on the code k8s.io/kubelet publishes for it. It does what
// node-driver-registrar does: asks the driver its name, serves a registration socket, ends with 1 when it is refused.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

type registrar struct {
	registerapi.UnimplementedRegistrationServer
	info    *registerapi.PluginInfo
	verdict chan *registerapi.RegistrationStatus
}

func (r *registrar) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return r.info, nil
}

func (r *registrar) NotifyRegistrationStatus(
	_ context.Context, status *registerapi.RegistrationStatus,
) (*registerapi.RegistrationStatusResponse, error) {
	r.verdict <- status
	return &registerapi.RegistrationStatusResponse{}, nil
}

func driverName(endpoint string) (string, error) {
	connection, err := grpc.NewClient("unix://"+endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return "", err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	info, err := csi.NewIdentityClient(connection).GetPluginInfo(ctx, &csi.GetPluginInfoRequest{}, grpc.WaitForReady(true))
	return info.GetName(), err
}

func main() {
	endpoint := flag.String("endpoint", "", "the CSI socket")
	registry := flag.String("registry", "", "the directory the node agent watches")
	versions := flag.String("versions", "1.0.0", "comma-separated")
	flag.Parse()

	name, err := driverName(*endpoint)
	if err != nil {
		log.Fatal(err)
	}
	socket := filepath.Join(*registry, name+"-reg.sock")
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		log.Fatal(err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		log.Fatal(err)
	}
	served := &registrar{
		info: &registerapi.PluginInfo{
			Type:              registerapi.CSIPlugin,
			Name:              name,
			Endpoint:          *endpoint,
			SupportedVersions: strings.Split(*versions, ","),
		},
		verdict: make(chan *registerapi.RegistrationStatus, 1),
	}
	server := grpc.NewServer()
	registerapi.RegisterRegistrationServer(server, served)
	go func() {
		for verdict := range served.verdict {
			_ = json.NewEncoder(os.Stdout).Encode(map[string]any{
				"registered": verdict.GetPluginRegistered(), "error": verdict.GetError(),
			})
			if !verdict.GetPluginRegistered() {
				os.Exit(1)
			}
		}
	}()
	log.Fatal(server.Serve(listener))
}
