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

// common lists the flags of run that --help shows. --help-all shows every flag.
func common() []string {
	return []string{"camera", "model", "mqtt", "web", "config", "name", "engine", "confidence", "classes", "duration", "json", "log"}
}

// helpAll is the flag that shows every flag of run.
const helpAll = "help-all"

// usage prints the flags of commands that have settings, grouped by section of the configuration file. Commands with few flags are left to
// plain. There is no template: the linker would keep every method of every type.
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
		all := c.Flags().Lookup(helpAll)
		if all != nil && !all.Changed {
			groups = groups[:1]
		}
		columns, _ := terminal.Open(os.Stdout).Size() // out leads to a buffer of cobra's
		printGroups(out, groups, columns)
		if all != nil && !all.Changed {
			fmt.Fprintf(out, "\n%s --%s lists every flag; edge-infer config defaults --all prints every setting.\n", c.CommandPath(), helpAll)
		}
		if c.HasAvailableSubCommands() {
			fmt.Fprintf(out, "\n%s COMMAND --help describes a command; %[1]s completion bash (zsh, fish) prints completions for a shell.\n",
				c.CommandPath())
		}
		return nil
	}
}

// addHelpAll adds the flag --help-all, which prints the help with every flag.
func addHelpAll(command *cobra.Command) {
	command.Flags().Bool(helpAll, false, "help with every flag")
	run := command.RunE
	command.RunE = func(c *cobra.Command, args []string) error {
		if c.Flags().Lookup(helpAll).Changed {
			return c.Help()
		}
		return run(c, args)
	}
}

// group is a group of flags in the help.
type group struct {
	section string // of the configuration file; "" if none
	title   string
	flags   *pflag.FlagSet
}

func newGroup(section, title string) *group {
	flags := pflag.NewFlagSet(title, pflag.ContinueOnError)
	flags.SortFlags = false
	return &group{section, title, flags}
}

// grouped returns the groups that have flags, the common flags first. Hidden flags are in none.
func grouped(all *pflag.FlagSet) []*group {
	groups := []*group{newGroup("", "Flags"), newGroup("", "More flags")}
	first := common()
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
