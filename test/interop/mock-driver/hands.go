package main

import (
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"k8s.io/kubernetes/pkg/volume/util/volumepathhandler"
	"k8s.io/kubernetes/test/e2e/storage/drivers/csi-test/mock/service"
	"k8s.io/mount-utils"
)

const ephemeral = "csi.storage.k8s.io/ephemeral"
const imageBytes = 16 << 20

// hands mount where the mock driver only makes a directory. The seam gives a path and nothing else, so the request that
// is being answered is looked up by its target.
type hands struct {
	service.OSDirIO
	state    string
	mounter  mount.Interface
	devices  volumepathhandler.BlockVolumePathHandler
	lock     sync.Mutex
	requests map[string]*csi.NodePublishVolumeRequest
}

func newHands(state string) *hands {
	return &hands{
		state:    state,
		mounter:  mount.New(""),
		devices:  volumepathhandler.NewBlockVolumePathHandler(),
		requests: map[string]*csi.NodePublishVolumeRequest{},
	}
}

func (h *hands) volume(id string) string {
	return filepath.Join(h.state, id)
}

func (h *hands) image(id string) string {
	return h.volume(id) + ".img"
}

func (h *hands) expect(request *csi.NodePublishVolumeRequest) {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.requests[request.GetTargetPath()] = request
}

// Mkdir is called by the driver where it publishes.
func (h *hands) Mkdir(target string) error {
	h.lock.Lock()
	request := h.requests[target]
	h.lock.Unlock()
	if request.GetVolumeCapability().GetBlock() != nil {
		return h.bindDevice(request)
	}
	source := h.volume(request.GetVolumeId())
	if err := os.MkdirAll(source, 0o750); err != nil {
		return err
	}
	if err := os.Mkdir(target, 0o750); err != nil && !os.IsExist(err) {
		return err
	}
	options := []string{"bind"}
	if request.GetReadonly() {
		options = append(options, "ro")
	}
	return h.mounter.Mount(source, target, "", options)
}

// bindDevice shows a loop device over an image file of the volume as a file, as a block volume is published.
func (h *hands) bindDevice(request *csi.NodePublishVolumeRequest) error {
	if err := os.MkdirAll(h.state, 0o750); err != nil {
		return err
	}
	image := h.image(request.GetVolumeId())
	file, err := os.OpenFile(image, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(file.Truncate(imageBytes), file.Close()); err != nil {
		return err
	}
	device, err := h.devices.AttachFileDevice(image)
	if err != nil {
		return err
	}
	target, err := os.OpenFile(request.GetTargetPath(), os.O_CREATE, 0o660)
	if err != nil {
		return err
	}
	return errors.Join(target.Close(), h.mounter.Mount(device, target.Name(), "", []string{"bind"}))
}

// RemoveAll is called by the driver where it unpublishes.
func (h *hands) RemoveAll(target string) error {
	if err := mount.CleanupMountPoint(target, h.mounter, true); err != nil {
		return err
	}
	h.lock.Lock()
	request := h.requests[target]
	h.lock.Unlock()
	if request.GetVolumeCapability().GetBlock() == nil {
		return nil
	}
	return h.devices.DetachFileDevice(h.image(request.GetVolumeId()))
}

// afterPublish: for ephemeral volumes the driver writes a line in its book and does not even ask for a directory.
func (h *hands) afterPublish(request *csi.NodePublishVolumeRequest) error {
	if h.state == "" || request.GetVolumeContext()[ephemeral] != "true" {
		return nil
	}
	mounted, err := h.mounter.IsMountPoint(request.GetTargetPath())
	if mounted || (err != nil && !os.IsNotExist(err)) {
		return err
	}
	return h.Mkdir(request.GetTargetPath())
}

func (h *hands) afterUnpublish(request *csi.NodeUnpublishVolumeRequest) error {
	h.lock.Lock()
	published := h.requests[request.GetTargetPath()]
	delete(h.requests, request.GetTargetPath())
	h.lock.Unlock()
	if h.state == "" || published.GetVolumeContext()[ephemeral] != "true" {
		return nil
	}
	if err := h.RemoveAll(request.GetTargetPath()); err != nil {
		return err
	}
	return os.RemoveAll(h.volume(request.GetVolumeId()))
}
