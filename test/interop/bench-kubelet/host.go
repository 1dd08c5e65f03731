package main

import (
	"errors"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/kubernetes/pkg/kubelet/configmap"
	"k8s.io/kubernetes/pkg/kubelet/secret"
	"k8s.io/kubernetes/pkg/volume"
	volumetesting "k8s.io/kubernetes/pkg/volume/testing"
	"k8s.io/kubernetes/pkg/volume/util/hostutil"
	"k8s.io/mount-utils"
)

// host does what the kubelet's own volume host does, method by method. For what the bench has not (tokens, trust anchors,
// labels of the node) it is the host of Kubernetes' own tests.
type host struct {
	volume.VolumeHost
	volume.KubeletVolumeHost
	plugins    *volume.VolumePluginMgr
	mounter    mount.Interface
	hostUtil   hostutil.HostUtils
	secrets    secret.Manager
	configMaps configmap.Manager
	informers  informers.SharedInformerFactory
	lister     storagelisters.CSIDriverLister
	synced     cache.InformerSynced
	// attached has what the Node lists; nil where nothing is to be attached.
	attached func() (map[v1.UniqueVolumeName]string, error)
}

func newHost(root, node string, client clientset.Interface, secrets secret.Manager, configMaps configmap.Manager) *host {
	factory := informers.NewSharedInformerFactory(client, 0)
	drivers := factory.Storage().V1().CSIDrivers()
	made := volumetesting.NewFakeKubeletVolumeHostWithCSINodeName(
		&testing.T{}, root, client, nil, node, drivers.Lister(), nil)
	return &host{
		VolumeHost: made, KubeletVolumeHost: made,
		plugins: &volume.VolumePluginMgr{}, mounter: mount.New(""), hostUtil: hostutil.NewHostUtil(),
		secrets: secrets, configMaps: configMaps,
		informers: factory, lister: drivers.Lister(), synced: drivers.Informer().HasSynced,
	}
}

func (h *host) GetMounter() mount.Interface                         { return h.mounter }
func (h *host) GetHostUtil() hostutil.HostUtils                     { return h.hostUtil }
func (h *host) GetInformerFactory() informers.SharedInformerFactory { return h.informers }
func (h *host) CSIDriverLister() storagelisters.CSIDriverLister     { return h.lister }
func (h *host) CSIDriversSynced() cache.InformerSynced              { return h.synced }
func (h *host) GetEventRecorder() record.EventRecorder              { return &record.FakeRecorder{} }

func (h *host) WaitForCacheSync() error {
	if !cache.WaitForCacheSync(wait.NeverStop, h.synced) {
		return errors.New("failed to wait for cache sync for CSIDriverLister")
	}
	return nil
}

func (h *host) GetAttachedVolumesFromNodeStatus() (map[v1.UniqueVolumeName]string, error) {
	if h.attached == nil {
		return h.VolumeHost.GetAttachedVolumesFromNodeStatus()
	}
	return h.attached()
}

func (h *host) GetNodeAllocatable() (v1.ResourceList, error) {
	return v1.ResourceList{v1.ResourceMemory: resource.MustParse("16Gi")}, nil
}

func (h *host) GetSecretFunc() func(namespace, name string) (*v1.Secret, error) {
	return h.secrets.GetSecret
}

func (h *host) GetConfigMapFunc() func(namespace, name string) (*v1.ConfigMap, error) {
	return h.configMaps.GetConfigMap
}

func (h *host) wrapped(name string, spec *volume.Spec) (volume.VolumePlugin, error) {
	if spec.Volume != nil {
		spec.Volume.Name = "wrapped_" + name
	}
	return h.plugins.FindPluginBySpec(spec)
}

func (h *host) NewWrapperMounter(name string, spec volume.Spec, pod *v1.Pod) (volume.Mounter, error) {
	plugin, err := h.wrapped(name, &spec)
	if err != nil {
		return nil, err
	}
	return plugin.NewMounter(&spec, pod)
}

func (h *host) NewWrapperUnmounter(name string, spec volume.Spec, uid types.UID) (volume.Unmounter, error) {
	plugin, err := h.wrapped(name, &spec)
	if err != nil {
		return nil, err
	}
	return plugin.NewUnmounter(spec.Name(), uid)
}
