package main

import (
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/volume"
	volumeutil "k8s.io/kubernetes/pkg/volume/util"
	"k8s.io/kubernetes/pkg/volume/util/volumepathhandler"
)

var errNotCustom = errors.New("not a CustomBlockVolumeMapper")

// mapVolume: SetUpDevice, MapPodDevice and MapBlockVolume, as the kubelet's operation generator calls them.
func mapVolume(plugins *volume.VolumePluginMgr, spec *volume.Spec, pod *v1.Pod) error {
	plugin, err := plugins.FindMapperPluginBySpec(spec)
	if err != nil {
		return err
	}
	mapper, err := plugin.NewBlockVolumeMapper(spec, pod)
	if err != nil {
		return err
	}
	global, err := mapper.GetGlobalMapPath(spec)
	if err != nil {
		return err
	}
	custom, ok := mapper.(volume.CustomBlockVolumeMapper)
	if !ok {
		return errNotCustom
	}
	if _, err := custom.SetUpDevice(); err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	device, err := custom.MapPodDevice()
	if err != nil {
		return fmt.Errorf("map: %w", err)
	}
	podMapPath, name := mapper.GetPodDeviceMapPath()
	handler := volumepathhandler.NewBlockVolumePathHandler()
	return volumeutil.MapBlockVolume(handler, device, global, podMapPath, name, pod.UID)
}

// unmapVolume starts from what is on disk, as unmountVolume does.
func unmapVolume(plugins *volume.VolumePluginMgr, directory, name string, pod *v1.Pod) error {
	plugin, err := plugins.FindMapperPluginByName("kubernetes.io/csi")
	if err != nil {
		return err
	}
	found, err := plugin.ConstructBlockVolumeSpec(pod.UID, name, directory)
	if err != nil {
		return fmt.Errorf("reconstruct: %w", err)
	}
	unmapper, err := plugin.NewBlockVolumeUnmapper(name, pod.UID)
	if err != nil {
		return err
	}
	global, err := unmapper.GetGlobalMapPath(found)
	if err != nil {
		return err
	}
	podMapPath, mapName := unmapper.GetPodDeviceMapPath()
	handler := volumepathhandler.NewBlockVolumePathHandler()
	if err := volumeutil.UnmapBlockVolume(handler, global, podMapPath, mapName, pod.UID); err != nil {
		return fmt.Errorf("unmap: %w", err)
	}
	custom, ok := unmapper.(volume.CustomBlockVolumeUnmapper)
	if !ok {
		return errNotCustom
	}
	if err := custom.UnmapPodDevice(); err != nil {
		return fmt.Errorf("unmap the pod's device: %w", err)
	}
	if err := custom.TearDownDevice(global, ""); err != nil {
		return fmt.Errorf("tear down: %w", err)
	}
	return handler.RemoveMapPath(global)
}
