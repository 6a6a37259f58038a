package main

import (
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/terminal"
)

// first are the flags that help tells before all others: what most people set.
var first = []string{"camera", "model", "mqtt", "web", "config", "device-name", "engine", "gpu", "conf", "only"}

// usage tells of commands that have flags of settings in groups: the first ones, those of the command itself, and the others by their
// section of the configuration file. Other commands are left to plain. There is no template: one has the linker keep
// every method of every type.
func usage(plain func(*cobra.Command) error) func(*cobra.Command) error {
	return func(c *cobra.Command) error {
		groups := grouped(c.LocalFlags())
		if len(groups) < 3 {
			return plain(c)
		}
		out := c.OutOrStderr()
		fmt.Fprintf(out, "Usage:\n  %s\n", c.UseLine())
		if c.HasAvailableSubCommands() {
			fmt.Fprintf(out, "  %s [command]\n\nCommands:\n", c.CommandPath())
			for _, sub := range c.Commands() {
				if sub.IsAvailableCommand() {
					fmt.Fprintf(out, "  %-*s %s\n", sub.NamePadding(), sub.Name(), sub.Short)
				}
			}
		}
		columns, _ := terminal.Open(os.Stdout).Size() // what out leads to is a buffer of cobra's
		printGroups(out, groups, columns)
		if c.HasAvailableSubCommands() {
			fmt.Fprintf(out, "\n%s COMMAND --help tells more about a command; %[1]s completion bash (zsh, fish) prints completions for a shell.\n",
				c.CommandPath())
		}
		return nil
	}
}

// group is flags that help tells together.
type group struct {
	section string // of the configuration file; "" for none
	title   string
	flags   *pflag.FlagSet
}

func newGroup(section, title string) *group {
	flags := pflag.NewFlagSet(title, pflag.ContinueOnError)
	flags.SortFlags = false
	return &group{section, title, flags}
}

// grouped gives the groups that have flags. Hidden flags are in none.
func grouped(all *pflag.FlagSet) []*group {
	groups := []*group{newGroup("", "Flags"), newGroup("", "More flags")}
	for _, name := range first {
		if flag := all.Lookup(name); flag != nil {
			groups[0].flags.AddFlag(flag)
		}
	}
	all.VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden || slices.Contains(first, flag.Name) {
			return
		}
		section := config.Section(flag)
		at := slices.IndexFunc(groups[1:], func(g *group) bool { return g.section == section }) + 1
		if at == 0 {
			at = len(groups)
			groups = append(groups, newGroup(section, "Section "+section+" of the configuration"))
		}
		groups[at].flags.AddFlag(flag)
	})
	return slices.DeleteFunc(groups, func(g *group) bool { return !g.flags.HasFlags() })
}

func printGroups(out io.Writer, groups []*group, columns int) {
	for _, g := range groups {
		fmt.Fprintf(out, "\n%s:\n%s", g.title, g.flags.FlagUsagesWrapped(columns))
	}
}
