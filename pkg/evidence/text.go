package evidence

import "fmt"

// names maps the values of an enum to their stable spelling in files.
type names []string

func (n names) text(v int) ([]byte, error) {
	if v < 0 || v >= len(n) {
		return nil, fmt.Errorf("value %d has no name", v)
	}
	return []byte(n[v]), nil
}

func (n names) value(text []byte) (int, error) {
	for i, s := range n {
		if s == string(text) {
			return i, nil
		}
	}
	return 0, fmt.Errorf("unknown word %q", text)
}

func outcomeNames() names {
	return names{"unknown", "exited", "signaled", "timed_out", "stopped", "refused", "released"}
}

func rankStateNames() names {
	return names{"unknown", "not_started", "running", "ended", "lost"}
}

func phaseNames() names { return names{"unknown", "pending", "running", "ended", "ending", "gone"} }

func launchNames() names {
	return names{"unknown", "planned", "intent", "submitted", "refused", "dropped"}
}

// MarshalText gives the spelling used in files.
func (o Outcome) MarshalText() ([]byte, error) { return outcomeNames().text(int(o)) }

// UnmarshalText reads the spelling used in files.
func (o *Outcome) UnmarshalText(b []byte) error {
	v, err := outcomeNames().value(b)
	*o = Outcome(v)
	return err
}

// String returns the spelling used in files.
func (o Outcome) String() string { return spell(o.MarshalText()) }

// MarshalText gives the spelling used in files.
func (s RankState) MarshalText() ([]byte, error) { return rankStateNames().text(int(s)) }

// UnmarshalText reads the spelling used in files.
func (s *RankState) UnmarshalText(b []byte) error {
	v, err := rankStateNames().value(b)
	*s = RankState(v)
	return err
}

// String returns the spelling used in files.
func (s RankState) String() string { return spell(s.MarshalText()) }

// MarshalText gives the spelling used in files.
func (p Phase) MarshalText() ([]byte, error) { return phaseNames().text(int(p)) }

// UnmarshalText reads the spelling used in files.
func (p *Phase) UnmarshalText(b []byte) error {
	v, err := phaseNames().value(b)
	*p = Phase(v)
	return err
}

// String returns the spelling used in files.
func (p Phase) String() string { return spell(p.MarshalText()) }

// MarshalText gives the spelling used in files.
func (s LaunchState) MarshalText() ([]byte, error) { return launchNames().text(int(s)) }

// UnmarshalText reads the spelling used in files.
func (s *LaunchState) UnmarshalText(b []byte) error {
	v, err := launchNames().value(b)
	*s = LaunchState(v)
	return err
}

// String returns the spelling used in files.
func (s LaunchState) String() string { return spell(s.MarshalText()) }

func spell(b []byte, err error) string {
	if err != nil {
		return "unknown"
	}
	return string(b)
}
