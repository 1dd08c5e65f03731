// The kubelet's own plugin manager and CSI volume plugin (k8s.io/kubernetes, pkg/kubelet/pluginmanager and
// pkg/volume/csi), unmodified, over a state root, with the real mount library and an API server of two objects in
// memory. It mounts and unmounts one volume for one pod as the kubelet does; one verb per line on standard input.
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
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"k8s.io/kubernetes/pkg/kubelet/config"
	"k8s.io/kubernetes/pkg/kubelet/pluginmanager"
	"k8s.io/kubernetes/pkg/kubelet/pluginmanager/cache"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/csi"
	volumetesting "k8s.io/kubernetes/pkg/volume/testing"
	"k8s.io/kubernetes/pkg/volume/util/hostutil"
	"k8s.io/mount-utils"
)

// host is the volume host of Kubernetes' own tests, less its two fakes.
type host struct {
	volume.VolumeHost
	volume.KubeletVolumeHost
	mounter  mount.Interface
	hostUtil hostutil.HostUtils
}

func (h *host) GetMounter() mount.Interface     { return h.mounter }
func (h *host) GetHostUtil() hostutil.HostUtils { return h.hostUtil }

// handler says aloud what the kubelet's own CSI handler did.
type handler struct{ cache.PluginHandler }

func (h handler) RegisterPlugin(name, endpoint string, versions []string, timeout *time.Duration) error {
	err := h.PluginHandler.RegisterPlugin(name, endpoint, versions, timeout)
	say("registered", name, err)
	return err
}

func say(verb, subject string, err error) {
	answer := map[string]string{"done": verb, "subject": subject}
	if err != nil {
		answer["error"] = err.Error()
	}
	_ = json.NewEncoder(os.Stdout).Encode(answer)
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	root := flag.String("root", "", "the state root")
	node := flag.String("node", "", "the node's name")
	driver := flag.String("driver", "", "the CSI driver's name")
	handle := flag.String("handle", "", "the volume handle")
	volumeName := flag.String("volume", "", "the PersistentVolume's name")
	fsType := flag.String("fs", "ext4", "")
	attributes := flag.String("attributes", "{}", "volumeAttributes, as JSON")
	block := flag.Bool("block", false, "as a block device")
	uid := flag.String("uid", "", "the pod's uid")
	flag.Parse()

	context_ := map[string]string{}
	if err := json.Unmarshal([]byte(*attributes), &context_); err != nil {
		log.Fatal(err)
	}
	mode := v1.PersistentVolumeFilesystem
	if *block {
		mode = v1.PersistentVolumeBlock
	}
	no := false
	policy := storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy
	csiDriver := &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: *driver},
		// The API server's defaults are ours to fill in: the client in memory has none.
		Spec: storagev1.CSIDriverSpec{
			AttachRequired:       &no,
			PodInfoOnMount:       &no,
			FSGroupPolicy:        &policy,
			VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent},
		},
	}
	client := fake.NewSimpleClientset(csiDriver, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: *node}})
	factory := informers.NewSharedInformerFactory(client, 0)
	lister := factory.Storage().V1().CSIDrivers().Lister()
	stop := make(chan struct{})
	factory.Start(stop)
	factory.WaitForCacheSync(stop)

	made := volumetesting.NewFakeKubeletVolumeHostWithCSINodeName(&testing.T{}, *root, client, nil, *node, lister, nil)
	real := &host{VolumeHost: made, KubeletVolumeHost: made, mounter: mount.New(""), hostUtil: hostutil.NewHostUtil()}
	plugins := &volume.VolumePluginMgr{}
	if err := plugins.InitPlugins(csi.ProbeVolumePlugins(), nil, real); err != nil {
		log.Fatal(err)
	}
	manager := pluginmanager.NewPluginManager(filepath.Join(*root, "plugins_registry"), &record.FakeRecorder{})
	manager.AddHandler(registerapi.CSIPlugin, handler{csi.PluginHandler})
	go manager.Run(context.Background(), config.NewSourcesReady(func(sets.Set[string]) bool { return true }), stop)

	spec := volume.NewSpecFromPersistentVolume(&v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: *volumeName},
		Spec: v1.PersistentVolumeSpec{
			VolumeMode:  &mode,
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{
				Driver: *driver, VolumeHandle: *handle, FSType: *fsType, VolumeAttributes: context_,
			}},
		},
	}, false)
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "guest", Namespace: "default", UID: types.UID(*uid)}}

	directory := real.GetPodVolumeDir(pod.UID, "kubernetes.io~csi", *volumeName)
	devices := real.GetPodVolumeDeviceDir(pod.UID, "kubernetes.io~csi")
	verbs := map[string]func() error{
		"mount":   func() error { return mountVolume(plugins, spec, pod) },
		"unmount": func() error { return unmountVolume(plugins, directory, *volumeName, pod) },
		"map":     func() error { return mapVolume(plugins, spec, pod) },
		"unmap":   func() error { return unmapVolume(plugins, devices, *volumeName, pod) },
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		verb, known := verbs[lines.Text()]
		if !known {
			say(lines.Text(), "", fmt.Errorf("unknown verb"))
			continue
		}
		say(lines.Text(), *volumeName, verb())
	}
}

// mountVolume: MountDevice and SetUp, as the kubelet's operation generator calls them.
func mountVolume(plugins *volume.VolumePluginMgr, spec *volume.Spec, pod *v1.Pod) error {
	plugin, err := plugins.FindDeviceMountablePluginBySpec(spec)
	if err != nil {
		return err
	}
	device, err := plugin.NewDeviceMounter()
	if err != nil {
		return err
	}
	staging, err := device.GetDeviceMountPath(spec)
	if err != nil {
		return err
	}
	if err := device.MountDevice(spec, "", staging, volume.DeviceMounterArgs{}); err != nil {
		return err
	}
	mounter, err := plugin.NewMounter(spec, pod)
	if err != nil {
		return err
	}
	return mounter.SetUp(volume.MounterArgs{})
}

// unmountVolume starts from what is on disk, as a kubelet does that was just started: it knows a name and a directory.
func unmountVolume(plugins *volume.VolumePluginMgr, directory, name string, pod *v1.Pod) error {
	plugin, err := plugins.FindPluginByName("kubernetes.io/csi")
	if err != nil {
		return err
	}
	found, err := plugin.ConstructVolumeSpec(name, directory)
	if err != nil {
		return fmt.Errorf("reconstruct: %w", err)
	}
	unmounter, err := plugin.NewUnmounter(name, pod.UID)
	if err != nil {
		return err
	}
	if err := unmounter.TearDown(); err != nil {
		return fmt.Errorf("tear down: %w", err)
	}
	devices, err := plugins.FindDeviceMountablePluginByName("kubernetes.io/csi")
	if err != nil {
		return err
	}
	mounter := must(devices.NewDeviceMounter())
	staging, err := mounter.GetDeviceMountPath(found.Spec)
	if err != nil {
		return fmt.Errorf("staging path: %w", err)
	}
	return must(devices.NewDeviceUnmounter()).UnmountDevice(staging)
}
