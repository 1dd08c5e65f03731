// The kubelet's own volume manager, plugin manager, plugins and managers of secrets and configMaps (k8s.io/kubernetes),
// unmodified, over a state root, with the real mount library: what the bench measures beside Mooring. Its API is in
// memory, or with -kubeconfig a real one, with what of the kubelet belongs to volumes on a node of a cluster.
// It takes one command per line, as JSON, and answers each with one line.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"k8s.io/kubernetes/pkg/kubelet/config"
	"k8s.io/kubernetes/pkg/kubelet/configmap"
	"k8s.io/kubernetes/pkg/kubelet/pluginmanager"
	"k8s.io/kubernetes/pkg/kubelet/pluginmanager/cache"
	"k8s.io/kubernetes/pkg/kubelet/secret"
	"k8s.io/kubernetes/pkg/kubelet/volumemanager"
	"k8s.io/kubernetes/pkg/volume"
	configmapplugin "k8s.io/kubernetes/pkg/volume/configmap"
	"k8s.io/kubernetes/pkg/volume/csi"
	"k8s.io/kubernetes/pkg/volume/emptydir"
	secretplugin "k8s.io/kubernetes/pkg/volume/secret"
	"k8s.io/kubernetes/pkg/volume/util/volumepathhandler"
)

// command is one line of the bench.
type command struct {
	ID int    `json:"id"`
	Do string `json:"do"`
	// up: objects of the API, pods among them.
	Objects []json.RawMessage `json:"objects"`
	// down: uids of pods.
	Pods []types.UID `json:"pods"`
	// mounted, unmounted: on a node of a cluster.
	Expected []expected `json:"expected"`
}

// answer has milliseconds since the command began, by uid of the pod.
type answer struct {
	ID   int                   `json:"id,omitempty"`
	Done string                `json:"done"`
	Book map[types.UID]float64 `json:"book,omitempty"`
	Gate map[types.UID]float64 `json:"gate,omitempty"`
	// At has milliseconds of CLOCK_MONOTONIC, by name of the pod.
	At    map[string]float64 `json:"at,omitempty"`
	Error string             `json:"error,omitempty"`
}

func say(one answer) { _ = json.NewEncoder(os.Stdout).Encode(one) }

// handler says aloud that the kubelet's own CSI handler has registered a driver.
type handler struct{ cache.PluginHandler }

func (h handler) RegisterPlugin(name, endpoint string, versions []string, timeout *time.Duration) error {
	err := h.PluginHandler.RegisterPlugin(name, endpoint, versions, timeout)
	if err != nil {
		say(answer{Done: "registered", Error: err.Error()})
	} else {
		say(answer{Done: "registered"})
	}
	return err
}

func main() {
	root := flag.String("root", "", "the state root")
	driver := flag.String("driver", "", "the CSI driver's name")
	logFile := flag.String("log", os.DevNull, "where the kubelet's log goes")
	kubeconfig := flag.String("kubeconfig", "", "a node's, of a real API server; without it the API is in memory")
	node := flag.String("node", nodeName, "the name of the node")
	flag.Parse()
	kubeletLog, err := os.OpenFile(*logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		log.Fatal(err)
	}
	klog.LogToStderr(false)
	klog.SetOutput(kubeletLog)

	ctx := context.Background()
	var objects *api
	var joined *cluster
	var client clientset.Interface
	if *kubeconfig == "" {
		objects = newAPI(*driver)
		client = objects.client
	} else {
		if joined, err = newCluster(ctx, *kubeconfig, types.NodeName(*node)); err != nil {
			log.Fatal(err)
		}
		client = joined.client
	}
	secrets := secret.NewWatchingSecretManager(client, resyncInterval)
	configMaps := configmap.NewWatchingConfigMapManager(client, resyncInterval)
	real := newHost(*root, *node, client, secrets, configMaps)
	if joined != nil {
		real.attached = joined.attached
	}
	plugins := []volume.VolumePlugin{}
	plugins = append(plugins, emptydir.ProbeVolumePlugins()...)
	plugins = append(plugins, secretplugin.ProbeVolumePlugins()...)
	plugins = append(plugins, configmapplugin.ProbeVolumePlugins()...)
	plugins = append(plugins, csi.ProbeVolumePlugins()...)
	if err := real.plugins.InitPlugins(plugins, nil, real); err != nil {
		log.Fatal(err)
	}

	// Its sources are ready when the first pods were given, as the kubelet's are when it has listed its pods.
	var given atomic.Bool
	ready := config.NewSourcesReady(func(sets.Set[string]) bool { return given.Load() })
	manager := pluginmanager.NewPluginManager(filepath.Join(*root, "plugins_registry"), &record.FakeRecorder{})
	manager.AddHandler(registerapi.CSIPlugin, handler{csi.PluginHandler})
	known := newPods(secrets, configMaps)
	volumes := volumemanager.NewVolumeManager(
		true, types.NodeName(*node), known, known, client, real.plugins, real.mounter, real.hostUtil,
		real.GetPodsDir(), &record.FakeRecorder{}, volumepathhandler.NewBlockVolumePathHandler())
	go manager.Run(ctx, ready, ctx.Done())
	go volumes.Run(ctx, ready)

	runs := &runner{objects: objects, pods: known, volumes: volumes, given: &given}
	if joined != nil {
		joined.watchPods(func(all []*v1.Pod) { runs.follow(ctx, all) })
		go joined.reportInUse(ctx, volumes)
	}
	if err := obey(ctx, runs); err != nil {
		log.Fatal(err)
	}
}

const lineBytesMax = 64 << 20

func obey(ctx context.Context, runs *runner) error {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, lineBytesMax)
	for lines.Scan() {
		one := command{}
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return err
		}
		done := answer{}
		var err error
		switch one.Do {
		case "up":
			done, err = runs.up(ctx, one.Objects)
		case "down":
			done, err = runs.down(one.Pods)
		case "mounted":
			done, err = runs.mounted(one.Expected)
		case "unmounted":
			done, err = runs.unmounted(one.Expected)
		default:
			err = fmt.Errorf("unknown command %q", one.Do)
		}
		done.ID, done.Done = one.ID, one.Do
		if err != nil {
			done.Error = err.Error()
		}
		say(done)
	}
	return lines.Err()
}
