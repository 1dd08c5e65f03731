package main

import (
	"context"
	"encoding/json"
	"os"
	"path"
	"slices"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// record is what the driver itself saw: a line where a call begins and one where it ends. No value of a secret.
type record struct {
	lock sync.Mutex
	file *os.File
}

type line struct {
	Begin          string            `json:"begin,omitempty"`
	End            string            `json:"end,omitempty"`
	Code           string            `json:"code,omitempty"`
	Volume         string            `json:"volume,omitempty"`
	Staging        string            `json:"staging,omitempty"`
	Target         string            `json:"target,omitempty"`
	Path           string            `json:"path,omitempty"`
	ReadOnly       bool              `json:"readOnly,omitempty"`
	PublishContext map[string]string `json:"publishContext,omitempty"`
	VolumeContext  map[string]string `json:"volumeContext,omitempty"`
	SecretKeys     []string          `json:"secretKeys,omitempty"`
	RequiredBytes  int64             `json:"requiredBytes,omitempty"`
}

func openRecord(name string) (*record, error) {
	if name == "" {
		return &record{}, nil
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return &record{file: file}, err
}

func (r *record) write(one line) {
	if r.file == nil {
		return
	}
	text, err := json.Marshal(one)
	if err != nil {
		panic(err)
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	if _, err := r.file.Write(append(text, '\n')); err != nil {
		panic(err)
	}
}

// Each request has some of these getters; the generated code names them alike.
func describe(request any) line {
	var one line
	if r, ok := request.(interface{ GetVolumeId() string }); ok {
		one.Volume = r.GetVolumeId()
	}
	if r, ok := request.(interface{ GetStagingTargetPath() string }); ok {
		one.Staging = r.GetStagingTargetPath()
	}
	if r, ok := request.(interface{ GetTargetPath() string }); ok {
		one.Target = r.GetTargetPath()
	}
	if r, ok := request.(interface{ GetVolumePath() string }); ok {
		one.Path = r.GetVolumePath()
	}
	if r, ok := request.(interface{ GetReadonly() bool }); ok {
		one.ReadOnly = r.GetReadonly()
	}
	if r, ok := request.(interface{ GetPublishContext() map[string]string }); ok {
		one.PublishContext = r.GetPublishContext()
	}
	if r, ok := request.(interface{ GetVolumeContext() map[string]string }); ok {
		one.VolumeContext = r.GetVolumeContext()
	}
	if r, ok := request.(interface{ GetSecrets() map[string]string }); ok {
		for key := range r.GetSecrets() {
			one.SecretKeys = append(one.SecretKeys, key)
		}
		slices.Sort(one.SecretKeys)
	}
	if r, ok := request.(interface{ GetCapacityRange() *csi.CapacityRange }); ok {
		one.RequiredBytes = r.GetCapacityRange().GetRequiredBytes()
	}
	return one
}

func intercept(record *record, hands *hands) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		method := path.Base(info.FullMethod)
		begin := describe(request)
		begin.Begin = method
		record.write(begin)
		if publish, ok := request.(*csi.NodePublishVolumeRequest); ok {
			hands.expect(publish)
		}
		reply, err := handle(ctx, request)
		if err == nil {
			switch done := request.(type) {
			case *csi.NodePublishVolumeRequest:
				err = hands.afterPublish(done)
			case *csi.NodeUnpublishVolumeRequest:
				err = hands.afterUnpublish(done)
			}
			if err != nil {
				err = status.Error(codes.Internal, err.Error())
			}
		}
		record.write(line{End: method, Code: status.Code(err).String(), Volume: begin.Volume})
		return reply, err
	}
}
