package terminal

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// AskLogin asks the person at standard input, which must be a terminal, for a user name and a password. The password is not shown.
func AskLogin(out io.Writer) (user, password string, err error) {
	fmt.Fprint(out, "user: ")
	user, err = bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil {
		return "", "", fmt.Errorf("read user name: %w", err)
	}
	password, err = AskPassword(out, "password: ")
	return strings.TrimSpace(user), password, err
}

// AskPassword asks the person at standard input for a password, which is not shown. It returns an error if standard input is no terminal.
func AskPassword(out io.Writer, prompt string) (string, error) {
	fmt.Fprint(out, prompt)
	typed, err := term.ReadPassword(int(os.Stdin.Fd()))
	fmt.Fprintln(out)
	if err != nil {
		return "", fmt.Errorf("read password: %w", err)
	}
	return string(typed), nil
}
