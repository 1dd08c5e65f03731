package main

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	storagedefaults "k8s.io/kubernetes/pkg/apis/storage/v1"
)

const (
	nodeName = "bench"
	// The kubelet's syncFrequency, which is what it gives its managers.
	resyncInterval = time.Minute
)

// api answers for what pods refer to from maps: the tracker of the client in memory would read all objects for one.
// What is rare, nodes and drivers, is the tracker's.
type api struct {
	client  *fake.Clientset
	mutex   sync.RWMutex
	objects map[string]runtime.Object
}

func newAPI(driver string) *api {
	no := false
	csiDriver := &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: driver},
		Spec:       storagev1.CSIDriverSpec{AttachRequired: &no},
	}
	storagedefaults.SetDefaults_CSIDriver(csiDriver)
	client := fake.NewSimpleClientset(csiDriver, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}})
	made := &api{client: client, objects: map[string]runtime.Object{}}
	for _, resource := range []string{"persistentvolumes", "persistentvolumeclaims", "secrets", "configmaps"} {
		client.PrependReactor("get", resource, made.get)
	}
	for _, resource := range []string{"secrets", "configmaps"} {
		client.PrependReactor("list", resource, made.list)
		// Nothing changes while it is measured.
		client.PrependWatchReactor(resource, func(clienttesting.Action) (bool, watch.Interface, error) {
			return true, watch.NewFake(), nil
		})
	}
	return made
}

func keyOf(resource, namespace, name string) string {
	return resource + " " + namespace + " " + name
}

func (a *api) get(action clienttesting.Action) (bool, runtime.Object, error) {
	name := action.(clienttesting.GetAction).GetName()
	resource := action.GetResource()
	found, err := a.find(resource.GroupResource(), action.GetNamespace(), name)
	return true, found, err
}

func (a *api) find(resource schema.GroupResource, namespace, name string) (runtime.Object, error) {
	a.mutex.RLock()
	defer a.mutex.RUnlock()
	found, known := a.objects[keyOf(resource.Resource, namespace, name)]
	if !known {
		return nil, errors.NewNotFound(resource, name)
	}
	return found.DeepCopyObject(), nil
}

// list answers the managers of the kubelet, which ask for one object by its name.
func (a *api) list(action clienttesting.Action) (bool, runtime.Object, error) {
	fields := action.(clienttesting.ListAction).GetListRestrictions().Fields
	name, exact := fields.RequiresExactMatch("metadata.name")
	if !exact {
		return true, nil, fmt.Errorf("a list of all %s was not expected", action.GetResource().Resource)
	}
	found, err := a.find(action.GetResource().GroupResource(), action.GetNamespace(), name)
	if err != nil && !errors.IsNotFound(err) {
		return true, nil, err
	}
	switch one := found.(type) {
	case *v1.Secret:
		return true, &v1.SecretList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []v1.Secret{*one}}, nil
	case *v1.ConfigMap:
		return true, &v1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []v1.ConfigMap{*one}}, nil
	}
	if action.GetResource().Resource == "secrets" {
		return true, &v1.SecretList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
	}
	return true, &v1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
}

// take reads objects as the API server would have made them, keeps what pods refer to, and returns the pods.
func (a *api) take(objects []json.RawMessage) ([]*v1.Pod, error) {
	a.client.ClearActions()
	a.mutex.Lock()
	defer a.mutex.Unlock()
	pods := []*v1.Pod{}
	for _, text := range objects {
		kind := metav1.TypeMeta{}
		if err := json.Unmarshal(text, &kind); err != nil {
			return nil, err
		}
		pod, err := a.takeOne(kind.Kind, text)
		if err != nil {
			return nil, err
		}
		if pod != nil {
			pods = append(pods, pod)
		}
	}
	return pods, nil
}

func (a *api) takeOne(kind string, text []byte) (*v1.Pod, error) {
	switch kind {
	case "Pod":
		one, err := read[v1.Pod](text)
		if err != nil {
			return nil, err
		}
		one.Namespace = metav1.NamespaceDefault
		defaults.SetObjectDefaults_Pod(one)
		return one, nil
	case "PersistentVolume":
		one, err := read[v1.PersistentVolume](text)
		if err != nil {
			return nil, err
		}
		one.Spec.ClaimRef.UID = types.UID(one.Spec.ClaimRef.Name)
		one.Status.Phase = v1.VolumeBound
		defaults.SetObjectDefaults_PersistentVolume(one)
		a.objects[keyOf("persistentvolumes", "", one.Name)] = one
	case "PersistentVolumeClaim":
		one, err := read[v1.PersistentVolumeClaim](text)
		if err != nil {
			return nil, err
		}
		one.Namespace, one.UID = metav1.NamespaceDefault, types.UID(one.Name)
		one.Status.Phase = v1.ClaimBound
		defaults.SetObjectDefaults_PersistentVolumeClaim(one)
		a.objects[keyOf("persistentvolumeclaims", one.Namespace, one.Name)] = one
	case "Secret":
		one, err := read[v1.Secret](text)
		if err != nil {
			return nil, err
		}
		one.Namespace, one.ResourceVersion, one.Data = metav1.NamespaceDefault, "1", map[string][]byte{}
		for key, value := range one.StringData {
			one.Data[key] = []byte(value)
		}
		one.StringData = nil
		defaults.SetObjectDefaults_Secret(one)
		a.objects[keyOf("secrets", one.Namespace, one.Name)] = one
	case "ConfigMap":
		one, err := read[v1.ConfigMap](text)
		if err != nil {
			return nil, err
		}
		one.Namespace, one.ResourceVersion = metav1.NamespaceDefault, "1"
		a.objects[keyOf("configmaps", one.Namespace, one.Name)] = one
	default:
		return nil, fmt.Errorf("unexpected kind %q", kind)
	}
	return nil, nil
}

func read[T any](text []byte) (*T, error) {
	one := new(T)
	return one, json.Unmarshal(text, one)
}
