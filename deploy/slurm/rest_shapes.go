package slurm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// number is a number as any version writes it: 5, "5", null, or
// {"set":true,"infinite":false,"number":5}.
type number struct {
	set bool
	n   int64
}

func (n *number) UnmarshalJSON(data []byte) error {
	*n = number{}
	var long struct {
		Set      bool        `json:"set"`
		Infinite bool        `json:"infinite"`
		Number   json.Number `json:"number"`
	}
	text := strings.Trim(string(data), `"`)
	if strings.HasPrefix(text, "{") {
		if err := json.Unmarshal(data, &long); err != nil {
			return err
		}
		if !long.Set || long.Infinite {
			return nil
		}
		text = long.Number.String()
	}
	if text == "null" || text == "" {
		return nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != f || f > 1<<62 || f < -(1<<62) {
		return fmt.Errorf("%.40q is no number", text)
	}
	n.set, n.n = true, int64(f)
	return nil
}

func (n number) text() string {
	if !n.set {
		return ""
	}
	return strconv.FormatInt(n.n, 10)
}

// stateWords is a state as any version writes it: one word, or a list of a state and
// what goes on besides.
type stateWords []string

func (w *stateWords) UnmarshalJSON(data []byte) error {
	*w = nil
	if strings.HasPrefix(string(data), "[") {
		return json.Unmarshal(data, (*[]string)(w))
	}
	var one string
	if err := json.Unmarshal(data, &one); err != nil {
		return err
	}
	if one != "" {
		*w = stateWords{one}
	}
	return nil
}

// word is the one word that SLURM's commands print of a state: what goes on
// besides hides the state.
func (w stateWords) word() string {
	for _, flag := range []string{
		"COMPLETING", "STAGE_OUT", "CONFIGURING", "RESIZING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "STOPPED",
		"REVOKED", "RESV_DEL_HOLD", "SIGNALING", "UPDATE_DB", "POWER_UP_NODE", "LAUNCH_FAILED", "RECONFIG_FAIL", "EXPEDITING",
	} {
		if slices.Contains(w, flag) {
			return flag
		}
	}
	if len(w) == 0 {
		return ""
	}
	return w[0]
}

// exit is how something ended: a raw wait status in the older versions of /slurm,
// else an object. The zero value is not known.
type exit struct {
	known        bool
	code, signal int64
}

func (e *exit) UnmarshalJSON(data []byte) error {
	*e = exit{}
	if !strings.HasPrefix(string(data), "{") {
		var raw number
		if err := raw.UnmarshalJSON(data); err != nil || !raw.set {
			return err
		}
		*e = exit{known: true, code: raw.n >> 8 & 0xff, signal: raw.n & 0x7f}
		return nil
	}
	var f struct {
		Code   number `json:"return_code"`
		Signal struct {
			ID    number `json:"id"`
			OldID number `json:"signal_id"`
		} `json:"signal"`
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	signal := f.Signal.ID
	if !signal.set {
		signal = f.Signal.OldID
	}
	*e = exit{known: f.Code.set || signal.set, code: f.Code.n, signal: signal.n}
	return nil
}

// text is "code:signal", "" when it is not known.
func (e exit) text() string {
	if !e.known {
		return ""
	}
	return fmt.Sprintf("%d:%d", e.code, e.signal)
}

// failed is text, but "" for a clean exit: where those are not to be trusted.
func (e exit) failed() string {
	if e.code == 0 && e.signal == 0 {
		return ""
	}
	return e.text()
}
