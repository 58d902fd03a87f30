// The protobuf form of the bytes that the load server sends.
//
// Kubernetes' own encoders convert the JSON form that the Python side wrote, so the bytes are those
// that an API server would send.

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http/httputil"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// listChunk is the size of a chunk of a protobuf list: the server encodes the list as a whole.
const listChunk = 32 * 1024

func encodeFolder(folder string) error {
	if err := encodeList(filepath.Join(folder, "list")); err != nil {
		return err
	}
	for _, name := range []string{"initial", "watch"} {
		if err := encodeStream(filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	return nil
}

func serializers() runtime.SerializerInfo {
	info, found := runtime.SerializerInfoForMediaType(
		scheme.Codecs.SupportedMediaTypes(), protobufType)
	if !found {
		panic("client-go has lost its protobuf")
	}
	return info
}

func encodeList(path string) error {
	source, err := os.Open(path + ".json.http")
	if err != nil {
		return err
	}
	defer source.Close()
	var list corev1.PodList
	if err := json.NewDecoder(httputil.NewChunkedReader(source)).Decode(&list); err != nil {
		return err
	}
	var body bytes.Buffer
	encoder := scheme.Codecs.EncoderForVersion(serializers().Serializer, corev1.SchemeGroupVersion)
	if err := encoder.Encode(&list, &body); err != nil {
		return err
	}
	return writeFile(path+".pb.http", func(target io.Writer) error {
		chunks := httputil.NewChunkedWriter(target)
		for rest := body.Bytes(); len(rest) > 0; {
			n := min(len(rest), listChunk)
			if _, err := chunks.Write(rest[:n]); err != nil {
				return err
			}
			rest = rest[n:]
		}
		if err := chunks.Close(); err != nil {
			return err
		}
		_, err := io.WriteString(target, "\r\n") // no trailers
		return err
	})
}

// encodeStream turns watch events, one a line, into length-delimited frames, one a chunk.
func encodeStream(path string) error {
	source, err := os.Open(path + ".json.http")
	if err != nil {
		return err
	}
	defer source.Close()
	info := serializers()
	embedded := scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion)
	return writeFile(path+".pb.http", func(target io.Writer) error {
		var one bytes.Buffer // the length and the content of a frame leave as one chunk
		frames := info.StreamSerializer.Framer.NewFrameWriter(&one)
		chunks := httputil.NewChunkedWriter(target)
		events := json.NewDecoder(&untilBroken{httputil.NewChunkedReader(source)})
		for {
			var event struct {
				Type   string
				Object corev1.Pod
			}
			if err := events.Decode(&event); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
			object, err := runtime.Encode(embedded, &event.Object)
			if err != nil {
				return err
			}
			frame := &metav1.WatchEvent{Type: event.Type, Object: runtime.RawExtension{Raw: object}}
			if err := info.StreamSerializer.Serializer.Encode(frame, frames); err != nil {
				return err
			}
			if _, err := chunks.Write(one.Bytes()); err != nil {
				return err
			}
			one.Reset()
		}
	})
}

// untilBroken reads a stream without an end mark, such as a watch, to the end of its data.
type untilBroken struct{ io.Reader }

func (u *untilBroken) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	return n, err
}

func writeFile(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	buffered := bufio.NewWriterSize(file, 1<<20)
	if err := write(buffered); err != nil {
		return err
	}
	return buffered.Flush()
}
