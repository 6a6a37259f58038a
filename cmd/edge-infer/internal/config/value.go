package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/engine/triton"
)

func text(target *string) func(*pflag.FlagSet, string, string) {
	return func(flags *pflag.FlagSet, name, help string) { flags.StringVar(target, name, *target, help) }
}

func whole(target *int) func(*pflag.FlagSet, string, string) {
	return func(flags *pflag.FlagSet, name, help string) { flags.IntVar(target, name, *target, help) }
}

func number(target *float64) func(*pflag.FlagSet, string, string) {
	return func(flags *pflag.FlagSet, name, help string) { flags.Float64Var(target, name, *target, help) }
}

func list(target *[]string) func(*pflag.FlagSet, string, string) {
	return func(flags *pflag.FlagSet, name, help string) { flags.StringSliceVar(target, name, *target, help) }
}

func numbers(target *[]float64) func(*pflag.FlagSet, string, string) {
	return func(flags *pflag.FlagSet, name, help string) { flags.Float64SliceVar(target, name, *target, help) }
}

func span(target *time.Duration) func(*pflag.FlagSet, string, string) {
	return func(flags *pflag.FlagSet, name, help string) { flags.DurationVar(target, name, *target, help) }
}

func yes(target *bool) func(*pflag.FlagSet, string, string) {
	return func(flags *pflag.FlagSet, name, help string) {
		flags.VarPF((*onOff)(target), name, "", help).NoOptDefVal = "on"
	}
}

// sharing is on, off, or the other kind of memory that a server may read.
func sharing(target *string) func(*pflag.FlagSet, string, string) {
	return func(flags *pflag.FlagSet, name, help string) {
		flags.VarPF((*shared)(target), name, "", help).NoOptDefVal = triton.SystemMemory
	}
}

type shared string

func (s *shared) String() string { return string(*s) }

func (s *shared) Type() string { return "string" }

func (s *shared) Set(text string) (err error) {
	*(*string)(s), err = triton.ParseSharedMemory(text)
	return err
}

// onOff is a truth value that also reads on and off.
type onOff bool

func (b *onOff) String() string { return strconv.FormatBool(bool(*b)) }

func (b *onOff) Type() string { return "bool" }

func (b *onOff) Set(text string) error {
	switch strings.ToLower(text) {
	case "on", "yes":
		*b = true
	case "off", "no":
		*b = false
	default:
		value, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q is not on or off", text)
		}
		*b = onOff(value)
	}
	return nil
}
