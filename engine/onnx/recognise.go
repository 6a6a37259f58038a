package onnx

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"github.com/edge-infer/edge-infer/engine"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// exportIt stands for the hint with the command that exports the file.
const exportIt = "export it"

const fetchAgain = "fetch or export the file again and compare its size"

// unsupported returns the error of a file that this package cannot process.
func unsupported(path, message, hint string) error {
	if path != "" {
		message = fmt.Sprintf("%q: %s", path, message)
	}
	if hint == exportIt {
		hint = "export it: " + ExportCommand(path)
	}
	return &engine.Error{Op: "model", Backend: "onnx", Kind: engine.ErrUnsupported, Message: message, Hint: hint}
}

// ExportCommand returns the command line that writes a PyTorch checkpoint of Ultralytics, FILE.pt, as ONNX. It does not name the path of a
// file with another extension, which that command would refuse.
func ExportCommand(path string) string {
	if !strings.HasSuffix(path, ".pt") {
		path = "FILE.pt"
	}
	if strings.ContainsAny(path, " \t'\"$&;|<>()*?!#\\`") {
		path = "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return "yolo export model=" + path + " format=onnx"
}

// otherFormats are file types that users mistake for ONNX models.
var otherFormats = []struct {
	offset        int
	magic         string
	message, hint string
}{
	{0, "version https://git-lfs", "a git-LFS pointer, not the model itself", "run git lfs pull where it came from"},
	{0, "ptrt", "a TensorRT plan, not ONNX", "a plan belongs to one GPU and one TensorRT; name the .onnx file that it was built from"},
	{0, "ftrt", "a TensorRT plan, not ONNX", "a plan belongs to one GPU and one TensorRT; name the .onnx file that it was built from"},
	{
		4, "{\"", "a TensorRT plan with a header of Ultralytics, not ONNX",
		"a plan belongs to one GPU and one TensorRT; name the .onnx file that it was built from",
	},
	{0, "\x80\x02", "a Python pickle such as an old PyTorch checkpoint, not ONNX", exportIt},
	{4, "TFL3", "a TensorFlow Lite model, not ONNX", "export the model to ONNX"},
	{4, "ORTM", "a model in ONNX Runtime's own format, not ONNX", "name the .onnx file that it was made from"},
	{0, "GGUF", "a GGUF model, not ONNX", "export the model to ONNX"},
	{0, "\x89HDF", "a Keras model in HDF5, not ONNX", "export the model to ONNX with tf2onnx"},
	{0, "\x1f\x8b", "a gzip file, not ONNX", "unpack it and name the .onnx file"},
	{0, "\x89PNG", "a PNG image, not ONNX", "name the .onnx file"},
	{0, "\xff\xd8\xff", "a JPEG image, not ONNX", "name the .onnx file"},
	{0, "\x7fELF", "a program or shared library, not ONNX", "name the .onnx file"},
}

// checkFormat returns an error if the file is not ONNX or is truncated.
func checkFormat(path string, data []byte) error {
	if len(data) == 0 {
		return unsupported(path, "the file is empty", fetchAgain)
	}
	start := bytes.ToLower(bytes.TrimLeft(data[:min(len(data), 256)], " \t\r\n\xef\xbb\xbf"))
	if bytes.HasPrefix(start, []byte("<!doctype html")) || bytes.HasPrefix(start, []byte("<html")) || bytes.HasPrefix(start, []byte("<?xml")) {
		return unsupported(path, "a web page or XML text, not ONNX", "the download was answered with a page; fetch the file itself")
	}
	if bytes.HasPrefix(data, []byte("PK\x03\x04")) {
		if bytes.Contains(data[:min(len(data), 4096)], []byte("data.pkl")) {
			return unsupported(path, "a PyTorch checkpoint, not ONNX", exportIt)
		}
		return unsupported(path, "a zip file, not ONNX", "unpack it and name the .onnx file")
	}
	for _, f := range otherFormats {
		if len(data) >= f.offset && bytes.HasPrefix(data[f.offset:], []byte(f.magic)) {
			return unsupported(path, f.message, f.hint)
		}
	}
	known := (*ModelProto)(nil).ProtoReflect().Descriptor().Fields()
	for at := 0; at < len(data); {
		number, wire, n := protowire.ConsumeTag(data[at:])
		if n < 0 || number > math.MaxInt16 {
			return foreignBytes(path, at)
		}
		if field := known.ByNumber(number); field != nil && (wire == protowire.VarintType) != (field.Kind() == protoreflect.Int64Kind) {
			return foreignBytes(path, at)
		}
		at += n
		size := protowire.ConsumeFieldValue(number, wire, data[at:])
		if size >= 0 {
			at += size
			continue
		}
		if wire != protowire.BytesType {
			return foreignBytes(path, at)
		}
		length, n := protowire.ConsumeVarint(data[at:])
		if n > 0 && length > uint64(len(data)-at-n) && known.ByNumber(number) != nil {
			name := known.ByNumber(number).Name()
			return unsupported(path, fmt.Sprintf("truncated: its %s takes %d bytes and %d are there", name, length, len(data)-at-n), fetchAgain)
		}
		return foreignBytes(path, at)
	}
	return nil
}

func foreignBytes(path string, at int) error {
	return unsupported(path, fmt.Sprintf("not ONNX: byte %d fits no ONNX field", at), "name the .onnx file that the exporter wrote")
}

const (
	// maxDepth is the deepest nesting of messages; a detector has 7 levels, each If or Loop adds 3.
	maxDepth = 64
	// maxMessages limits the memory that a small file can make the decoder allocate: an empty message has 2 bytes in the file and about 200
	// in memory.
	maxMessages = 2 << 20
)

// checkSize returns an error for a file with more messages than any model has, before memory is allocated for them.
func checkSize(path string, data []byte) error {
	left := maxMessages
	if !withinLimits(data, (*ModelProto)(nil).ProtoReflect().Descriptor(), maxDepth, &left) {
		return unsupported(path, fmt.Sprintf("more than %d nested fields or %d levels", maxMessages, maxDepth),
			"no exporter writes such a file; "+fetchAgain)
	}
	return nil
}

// withinLimits reports whether the messages of data stay within the limits. The decoder reports damaged ones.
func withinLimits(data []byte, message protoreflect.MessageDescriptor, depth int, left *int) bool {
	if depth == 0 {
		return false
	}
	for len(data) > 0 {
		number, wire, n := protowire.ConsumeTag(data)
		if n < 0 {
			return true
		}
		data = data[n:]
		size := protowire.ConsumeFieldValue(number, wire, data)
		if size < 0 {
			return true
		}
		if field := message.Fields().ByNumber(number); wire == protowire.BytesType && field != nil && field.Message() != nil {
			if *left--; *left < 0 {
				return false
			}
			body, _ := protowire.ConsumeBytes(data)
			if !withinLimits(body, field.Message(), depth-1, left) {
				return false
			}
		}
		data = data[size:]
	}
	return true
}
