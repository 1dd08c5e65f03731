package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/kubelet/configmap"
	"k8s.io/kubernetes/pkg/kubelet/secret"
	"k8s.io/kubernetes/pkg/kubelet/volumemanager"
	volumetypes "k8s.io/kubernetes/pkg/volume/util/types"
)

// pods is the kubelet's book of pods, and what its pod workers say of one: who is not in it has ended.
type pods struct {
	mutex      sync.RWMutex
	known      map[types.UID]*v1.Pod
	secrets    secret.Manager
	configMaps configmap.Manager
}

func newPods(secrets secret.Manager, configMaps configmap.Manager) *pods {
	return &pods{known: map[types.UID]*v1.Pod{}, secrets: secrets, configMaps: configMaps}
}

func (p *pods) GetPodByUID(uid types.UID) (*v1.Pod, bool) {
	p.mutex.RLock()
	defer p.mutex.RUnlock()
	pod, known := p.known[uid]
	return pod, known
}

func (p *pods) GetPods() []*v1.Pod {
	p.mutex.RLock()
	defer p.mutex.RUnlock()
	all := make([]*v1.Pod, 0, len(p.known))
	for _, pod := range p.known {
		all = append(all, pod)
	}
	return all
}

func (p *pods) ShouldPodContainersBeTerminating(uid types.UID) bool {
	_, known := p.GetPodByUID(uid)
	return !known
}

func (p *pods) ShouldPodRuntimeBeRemoved(uid types.UID) bool {
	return p.ShouldPodContainersBeTerminating(uid)
}

func (p *pods) add(pod *v1.Pod) {
	p.secrets.RegisterPod(pod)
	p.configMaps.RegisterPod(pod)
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.known[pod.UID] = pod
}

func (p *pods) remove(uid types.UID) (*v1.Pod, bool) {
	p.mutex.Lock()
	pod, known := p.known[uid]
	delete(p.known, uid)
	p.mutex.Unlock()
	if known {
		p.secrets.UnregisterPod(pod)
		p.configMaps.UnregisterPod(pod)
	}
	return pod, known
}

type runner struct {
	objects *api
	pods    *pods
	volumes volumemanager.VolumeManager
	given   *atomic.Bool
}

// How often the book is looked at: a look is made of the book's own questions and costs the measured process time, so a
// few pods are asked about, and all of them when one of those has come, and then there is a pause of many times the look.
const (
	lookEveryMin = time.Millisecond
	lookEveryMax = 10 * time.Millisecond
	lookShare    = 50
	lookPods     = 16
	patience     = 5 * time.Minute
	millisecond  = float64(time.Millisecond)
)

// await notes when `done` became true of each pod.
func await[K comparable](start time.Time, pending map[K]bool, done func(K) bool) (map[K]float64, error) {
	at := map[K]float64{}
	for len(pending) > 0 {
		look := time.Now()
		if look.Sub(start) > patience {
			return at, fmt.Errorf("%d pods are not done after %s", len(pending), patience)
		}
		asked, came := 0, false
		for uid := range pending {
			if asked++; asked > lookPods && !came {
				break
			}
			if done(uid) {
				came = true
				at[uid] = float64(time.Since(start)) / millisecond
				delete(pending, uid)
			}
		}
		time.Sleep(min(max(lookEveryMin, lookShare*time.Since(look)), lookEveryMax))
	}
	return at, nil
}

// up gives the pods to the volume manager and waits until each is mounted by its book and by its gate. The clock begins
// when all has been read.
func (r *runner) up(ctx context.Context, objects []json.RawMessage) (answer, error) {
	added, err := r.objects.take(objects)
	if err != nil {
		return answer{}, err
	}
	pending := map[types.UID]bool{}
	volumes := map[types.UID]int{}
	gate := map[types.UID]float64{}
	var mutex sync.Mutex
	var gates sync.WaitGroup
	failures := make(chan error, len(added))
	start := time.Now()
	for _, pod := range added {
		pending[pod.UID] = true
		volumes[pod.UID] = len(pod.Spec.Volumes)
		r.pods.add(pod)
		// As the kubelet's pod workers: one goroutine per pod, which asks until it is let through.
		gates.Go(func() {
			if err := r.volumes.WaitForAttachAndMount(ctx, pod); err != nil {
				failures <- err
				return
			}
			mutex.Lock()
			defer mutex.Unlock()
			gate[pod.UID] = float64(time.Since(start)) / millisecond
		})
	}
	r.given.Store(true)
	book, err := await(start, pending, func(uid types.UID) bool {
		return len(r.volumes.GetMountedVolumesForPod(volumetypes.UniquePodName(uid))) == volumes[uid]
	})
	if err != nil {
		return answer{}, err
	}
	gates.Wait()
	select {
	case err = <-failures:
	default:
	}
	return answer{Book: book, Gate: gate}, err
}

// down ends the pods and waits until nothing of them is in the book any more, staged volumes included.
func (r *runner) down(uids []types.UID) (answer, error) {
	pending := map[types.UID]bool{}
	staged := map[types.UID][]v1.UniqueVolumeName{}
	for _, uid := range uids {
		if pod, known := r.pods.GetPodByUID(uid); known {
			staged[uid] = r.objects.stagedOf(pod)
		}
	}
	start := time.Now()
	for _, uid := range uids {
		if _, known := r.pods.remove(uid); !known {
			return answer{}, fmt.Errorf("no pod %q", uid)
		}
		pending[uid] = true
	}
	book, err := await(start, pending, func(uid types.UID) bool {
		for _, name := range staged[uid] {
			if r.volumes.VolumeIsAttached(name) {
				return false
			}
		}
		return !r.volumes.HasPossiblyMountedVolumesForPod(volumetypes.UniquePodName(uid))
	})
	return answer{Book: book}, err
}

// stagedOf names the pod's CSI volumes as the volume manager does.
func (a *api) stagedOf(pod *v1.Pod) []v1.UniqueVolumeName {
	a.mutex.RLock()
	defer a.mutex.RUnlock()
	names := []v1.UniqueVolumeName{}
	for _, one := range pod.Spec.Volumes {
		if one.PersistentVolumeClaim == nil {
			continue
		}
		claim, known := a.objects[keyOf("persistentvolumeclaims", pod.Namespace, one.PersistentVolumeClaim.ClaimName)].(*v1.PersistentVolumeClaim)
		if !known {
			continue
		}
		volume, known := a.objects[keyOf("persistentvolumes", "", claim.Spec.VolumeName)].(*v1.PersistentVolume)
		if !known {
			continue
		}
		csi := volume.Spec.CSI
		names = append(names, v1.UniqueVolumeName("kubernetes.io/csi/"+csi.Driver+"^"+csi.VolumeHandle))
	}
	return names
}
