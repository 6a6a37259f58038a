package main

import (
	"context"
	"fmt"
	"log/slog"

	embedded "github.com/edge-infer/edge-infer/mqtt/broker"
)

// openBroker runs a broker in this process, so that its work is not counted as the program's.
func openBroker() (address string, end func(), err error) {
	b := &embedded.Broker{Address: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)}
	if err := b.Open(); err != nil {
		return "", nil, err
	}
	return b.URL(), func() { _ = b.Close() }, nil
}

// serveBroker is a broker until it is told to end. It prints where it listens.
func serveBroker(ctx context.Context) error {
	url, end, err := openBroker()
	if err != nil {
		return err
	}
	defer end()
	fmt.Println(url)
	<-ctx.Done()
	return nil
}
