package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
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

// sharing is yes for memory that a server may read, of which there are two kinds.
func sharing(target *bool) func(*pflag.FlagSet, string, string) {
	return func(flags *pflag.FlagSet, name, help string) {
		flags.VarPF((*shared)(target), name, "", help).NoOptDefVal = "on"
	}
}

type shared bool

func (s *shared) String() string { return (*onOff)(s).String() }

func (s *shared) Type() string { return "bool" }

func (s *shared) Set(text string) error {
	if strings.EqualFold(text, "cuda") {
		return errors.New("a GPU's memory is not shared, only the system's (on): pictures for servers are made on the CPU")
	}
	return (*onOff)(s).Set(text)
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
