package main

import (
	"context"
	"fmt"
	"log/slog"

	embedded "github.com/edge-infer/edge-infer/mqtt/broker"
)

// openBroker starts a broker in this process, so that its CPU time is not counted as edge-infer's.
func openBroker() (address string, end func(), err error) {
	b := &embedded.Broker{Address: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)}
	if err := b.Open(); err != nil {
		return "", nil, err
	}
	return b.URL(), func() { _ = b.Close() }, nil
}

// serveBroker runs a broker until the context ends and prints its address.
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
