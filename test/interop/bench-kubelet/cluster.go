package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	nodeutil "k8s.io/component-helpers/node/util"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/nodestatus"
	"k8s.io/kubernetes/pkg/kubelet/volumemanager"
	volumeutil "k8s.io/kubernetes/pkg/volume/util"
	volumetypes "k8s.io/kubernetes/pkg/volume/util/types"
)

// As in the kubelet's configuration when nobody has set them.
const (
	contentType         = "application/vnd.kubernetes.protobuf"
	apiQPS              = 50
	apiBurst            = 100
	nodeStatusFrequency = 10 * time.Second
	nodeStatusJitter    = 0.04
	nodeStatusTries     = 5
)

// cluster is what the kubelet does around its volume manager on a node of a real API server, and nothing more: it
// watches the pods of its node and the Node, and writes what volumes are in use into the Node's status.
type cluster struct {
	name types.NodeName
	// client asks within the kubelet's default limits, heartbeats without.
	client     clientset.Interface
	heartbeats clientset.Interface
	nodes      corelisters.NodeLister
}

func newCluster(ctx context.Context, kubeconfig string, name types.NodeName) (*cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.ContentType, config.QPS, config.Burst = contentType, apiQPS, apiBurst
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	often := rest.CopyConfig(config)
	often.QPS, often.Timeout = -1, nodeStatusFrequency
	heartbeats, err := clientset.NewForConfig(often)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithTweakListOptions(func(options *metav1.ListOptions) {
			options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, string(name)).String()
		}))
	nodes := factory.Core().V1().Nodes()
	made := &cluster{name: name, client: client, heartbeats: heartbeats, nodes: nodes.Lister()}
	hasNode := nodes.Informer().HasSynced
	factory.Start(wait.NeverStop)
	if !cache.WaitForCacheSync(ctx.Done(), hasNode) {
		return nil, fmt.Errorf("the Node %q cannot be read", name)
	}
	return made, made.annotate(ctx)
}

// annotate says, as the kubelet does when it registers, that the controller attaches for this node.
func (c *cluster) annotate(ctx context.Context) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, volumeutil.ControllerManagedAttachAnnotation)
	_, err := c.heartbeats.CoreV1().Nodes().Patch(
		ctx, string(c.name), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// attached is the kubelet's answer to its plugins.
func (c *cluster) attached() (map[v1.UniqueVolumeName]string, error) {
	node, err := c.nodes.Get(string(c.name))
	if err != nil {
		return nil, fmt.Errorf("error retrieving node: %v", err)
	}
	result := map[v1.UniqueVolumeName]string{}
	for _, one := range node.Status.VolumesAttached {
		result[one.Name] = one.DevicePath
	}
	return result, nil
}

// watchPods tells of all pods of the node whenever one changes, as the kubelet's source does.
func (c *cluster) watchPods(take func([]*v1.Pod)) {
	selector := fields.OneTermEqualSelector("spec.nodeName", string(c.name))
	listed := cache.NewListWatchFromClient(c.client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll, selector)
	store := cache.NewUndeltaStore(func(objects []any) {
		all := make([]*v1.Pod, 0, len(objects))
		for _, one := range objects {
			all = append(all, one.(*v1.Pod))
		}
		take(all)
	}, cache.MetaNamespaceKeyFunc)
	go cache.NewReflector(listed, &v1.Pod{}, store, 0).Run(wait.NeverStop)
}

// reportInUse writes the Node's status when what is in use has changed, every ten seconds.
func (c *cluster) reportInUse(ctx context.Context, volumes volumemanager.VolumeManager) {
	set := nodestatus.VolumesInUse(volumes.ReconcilerStatesHasBeenSynced, volumes.GetVolumesInUse)
	wait.JitterUntil(func() {
		for try := range nodeStatusTries {
			err := c.tryReport(ctx, try, set, volumes)
			if err == nil {
				return
			}
			klog.ErrorS(err, "Error updating node status, will retry")
		}
	}, nodeStatusFrequency, nodeStatusJitter, true, wait.NeverStop)
}

func (c *cluster) tryReport(
	ctx context.Context, try int, set nodestatus.Setter, volumes volumemanager.VolumeManager,
) error {
	before, err := c.nodes.Get(string(c.name))
	if try > 0 {
		before, err = c.heartbeats.CoreV1().Nodes().Get(ctx, string(c.name), metav1.GetOptions{})
	}
	if err != nil {
		return err
	}
	node := before.DeepCopy()
	if err := set(ctx, node); err != nil {
		return err
	}
	if !equality.Semantic.DeepEqual(before.Status.VolumesInUse, node.Status.VolumesInUse) {
		node, _, err = nodeutil.PatchNodeStatus(c.heartbeats.CoreV1(), c.name, before, node)
		if err != nil {
			return err
		}
	}
	volumes.MarkVolumesAsReportedInUse(node.Status.VolumesInUse)
	return nil
}

// isOver is what the kubelet's pod workers know of a pod whose containers have stopped for good; here its status tells.
func isOver(pod *v1.Pod) bool {
	if pod.DeletionTimestamp == nil {
		return false
	}
	for _, one := range pod.Status.ContainerStatuses {
		if one.State.Terminated == nil {
			return false
		}
	}
	return true
}

// follow keeps the book of pods, and has each new one waited for as a pod worker does.
func (r *runner) follow(ctx context.Context, all []*v1.Pod) {
	there := map[types.UID]bool{}
	for _, pod := range all {
		if isOver(pod) {
			continue
		}
		there[pod.UID] = true
		before, known := r.pods.GetPodByUID(pod.UID)
		if known && before.ResourceVersion == pod.ResourceVersion {
			continue
		}
		r.pods.add(pod)
		if known {
			continue
		}
		go func() {
			for r.volumes.WaitForAttachAndMount(ctx, pod) != nil {
				if _, wanted := r.pods.GetPodByUID(pod.UID); !wanted {
					return
				}
			}
		}()
	}
	for _, pod := range r.pods.GetPods() {
		if !there[pod.UID] {
			r.pods.remove(pod.UID)
		}
	}
	r.given.Store(true)
}

// expected is a pod that the bench waits for.
type expected struct {
	Name    string                `json:"name"`
	UID     types.UID             `json:"uid"`
	Volumes []v1.UniqueVolumeName `json:"volumes"`
}

// monotonicMs is CLOCK_MONOTONIC, which all processes of the machine share.
func monotonicMs() (float64, error) {
	now := unix.Timespec{}
	err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return float64(now.Nano()) / millisecond, err
}

// moments waits, and says on the machine's clock when `done` became true of each, by name.
func moments(pods []expected, done func(expected) bool) (answer, error) {
	startMs, err := monotonicMs()
	if err != nil {
		return answer{}, err
	}
	byName := map[string]expected{}
	pending := map[string]bool{}
	for _, one := range pods {
		byName[one.Name], pending[one.Name] = one, true
	}
	at, err := await(time.Now(), pending, func(name string) bool { return done(byName[name]) })
	for name, ms := range at {
		at[name] = startMs + ms
	}
	return answer{At: at}, err
}

// mounted waits until the book has all volumes of each pod, which may not be there yet.
func (r *runner) mounted(pods []expected) (answer, error) {
	return moments(pods, func(one expected) bool {
		for _, pod := range r.pods.GetPods() {
			if pod.Name == one.Name {
				mounted := r.volumes.GetMountedVolumesForPod(volumetypes.UniquePodName(pod.UID))
				return len(mounted) == len(one.Volumes)
			}
		}
		return false
	})
}

// unmounted waits until the book has nothing of each pod, staged volumes included.
func (r *runner) unmounted(pods []expected) (answer, error) {
	return moments(pods, func(one expected) bool {
		if _, known := r.pods.GetPodByUID(one.UID); known {
			return false
		}
		for _, name := range one.Volumes {
			if r.volumes.VolumeIsAttached(name) {
				return false
			}
		}
		return !r.volumes.HasPossiblyMountedVolumesForPod(volumetypes.UniquePodName(one.UID))
	})
}
