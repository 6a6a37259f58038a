package tensorrt

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/internal/atomicfile"
)

// CalibrationInput is one input of the network in a calibration file.
type CalibrationInput struct {
	Name string
	// Bytes is the size of one batch.
	Bytes int
}

// WriteCalibration writes the batches from next, until io.EOF, to a file for Calibration.Batches. next fills one buffer per input with a
// batch of images samples, preprocessed exactly as for inference. If it fails, or if there is no batch, it returns an error and leaves no
// file.
func WriteCalibration(path string, inputs []CalibrationInput, images int, next func(batch [][]byte) error) (err error) {
	if len(inputs) == 0 || images < 1 {
		return fmt.Errorf("calibration file %s: no input or no image in a batch", path)
	}
	part, err := atomicfile.Create(path, 0o600)
	if err != nil {
		return fmt.Errorf("calibration file: %w", err)
	}
	defer func() {
		if err == nil {
			err = part.Commit()
		}
		err = errors.Join(err, part.Close())
		if err != nil {
			err = fmt.Errorf("calibration file %s: %w", path, err)
		}
	}()
	const countAt = 12 // offset of the number of batches
	header := binary.LittleEndian.AppendUint32([]byte("EICALIB1"), uint32(len(inputs)))
	header = binary.LittleEndian.AppendUint32(header, 0)
	header = binary.LittleEndian.AppendUint32(header, uint32(images))
	batch := make([][]byte, len(inputs))
	for i, in := range inputs {
		header = binary.LittleEndian.AppendUint32(header, uint32(len(in.Name)))
		header = append(header, in.Name...)
		header = binary.LittleEndian.AppendUint64(header, uint64(in.Bytes))
		batch[i] = make([]byte, in.Bytes)
	}
	w := bufio.NewWriterSize(part, 1<<20)
	if _, err := w.Write(header); err != nil {
		return err
	}
	count := uint32(0)
	for ; ; count++ {
		err := next(batch)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		for _, data := range batch {
			if _, err := w.Write(data); err != nil {
				return err
			}
		}
	}
	if count == 0 {
		return &engine.Error{
			Op: "build", Backend: Name, Message: "no calibration images",
			Hint: "name a directory with at least 100 images like the camera's",
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err = part.WriteAt(binary.LittleEndian.AppendUint32(nil, count), countAt)
	return err
}
