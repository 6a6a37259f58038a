package daemon

import (
	"os"
	"strconv"
)

// restartsVariable is the environment variable that counts restarts in place.
const restartsVariable = "_EDGE_INFER_RESTARTS"

func restarts() int {
	n, _ := strconv.Atoi(os.Getenv(restartsVariable))
	return n
}

// countRestart counts one more, for the process that follows.
func countRestart() { _ = os.Setenv(restartsVariable, strconv.Itoa(restarts()+1)) }
