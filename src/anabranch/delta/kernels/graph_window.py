"""The union of events of a sliding window on arrays, and the facts that its elements give.

In a window whose events leave in the order of time, the newest event that gives a value of an element leaves last of
all that give one. So a value stays until its own event leaves, or a newer event brings another: no older value ever
comes back. Existence, each label and each property therefore need one number each, the position of the newest event
that gave it.

Where whole elements are read, the labels and properties of an element's newest event lie on top, and layers beneath
them: for each other set of labels and keys, those of the newest event that gave it. Their overlay is the element.

A node or relationship has a slot while it is in the window. `take_in` writes the arrivals, notes the slots whose
element may have changed, and counts relationships at their ends; `emit` compares these slots with the facts that they
gave before.

Invariant: a slot is free exactly when its element is not in the window, between calls. Positions grow.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from anabranch.delta.batch import ABSENT, NULL, Ids
from anabranch.delta.graph_rows import LinkRows, NodeRows
from anabranch.delta.kernels.compiling import Int, Record, Records, Small, compiled, fields, inlined, kernel

Bits = npt.NDArray[np.int64]
"""One bit for each kind, or for each label."""

NODE = np.dtype(fields("key seen degree bits version mark labels told_labels layers told_layers"))
LINK = np.dtype(
    [
        *fields("seen bits"),
        *fields(
            "key type source target old_type old_source old_target version layers told_layers mark spare", np.int32
        ),
    ]
)
"""Relationships are most of what a window holds: ids, slots and numbers of them take half the room."""
LOGGED = np.dtype(fields("position slot"))
LAYER = np.dtype(fields("position labels keys map next"))
STATE = np.dtype(
    fields(
        "node_free nodes link_free links node_head node_end link_head link_end "
        "touched_nodes touched_links removed added next_version versions wanted layer_free layer_end layers "
        "void was_void"
    )
)
NONE = -1
FACT = 5
RECORD = 5
"""The cells of a version before its values: key, type or set of labels, source, target, the version beneath."""


class NodeTable(NamedTuple):
    """Nodes by slot. `slots` are the slots by key; `labels` and `times` the positions that gave labels and values;
    `told` the values of the last version; `log` the arrivals in their order; `touched` the slots to look at; `layers`
    what lies beneath whole elements of both kinds, in lists, newest first."""

    records: Records
    slots: Small
    labels: Ids
    values: Ids
    times: Ids
    told: Ids
    log: Records
    touched: Ids
    layers: Records


class LinkTable(NamedTuple):
    """Relationships by slot."""

    records: Records
    slots: Small
    values: Ids
    times: Ids
    told: Ids
    log: Records
    touched: Ids


class Present(NamedTuple):
    """The touched elements as they are now: the values of nodes and relationships, null where there is none, the labels
    of nodes as bits, and the kinds whose conditions hold, as bits."""

    nodes: Ids
    labels: Bits
    links: Ids
    node_passes: Bits
    link_passes: Bits


class KindTable(NamedTuple):
    """What kinds ask for. `labels_of_set` are the labels of a label set as bits, `needs` the labels that a kind of
    nodes needs, `kinds_of_type` the kinds of relationships that a type allows. `masks` are, as bits, the shown kinds of
    nodes, and the shown and the undirected kinds of relationships. `numbers` are the numbers of kinds in facts, those
    of nodes first. `wholes` says whether labels are read, and in which column there are the maps of all properties of
    nodes, and of relationships (NONE: they are not read); the column behind it has the numbers of their keys."""

    labels_of_set: Bits
    needs: Bits
    kinds_of_type: Bits
    masks: Bits
    node_numbers: Ids
    link_numbers: Ids
    wholes: Ids


class TruthTable(NamedTuple):
    """Conditions on one value each: the kind that each belongs to and the column that it reads (NONE: the key), of
    nodes and of relationships. `truths` says, by condition and id, whether it holds; those of nodes come first."""

    node_kinds: Ids
    node_columns: Ids
    link_kinds: Ids
    link_columns: Ids
    truths: npt.NDArray[np.uint8]


class SlideRows(NamedTuple):
    """The arrivals of several slides. Slide i takes in the rows before position `stops[i]`, and then the events before
    `firsts[i]` leave. `removed` and `added` get the number of facts at the end of each slide."""

    nodes: NodeRows
    links: LinkRows
    firsts: Ids
    stops: Ids
    removed: Ids
    added: Ids


class Emission(NamedTuple):
    """The facts that left and that came, and the records of new versions with their shapes: 0 of a node, 1 of a
    relationship."""

    removed: Ids
    added: Ids
    versions: Ids
    shapes: Ids


# --- taking in ---


@inlined
def _node_slot(nodes: NodeTable, state: Record, key: Int) -> Int:
    slot = np.int64(nodes.slots[key])
    if slot >= 0:
        return slot
    slot = state.node_free
    if slot >= 0:
        state.node_free = nodes.records[slot].degree
    else:
        slot = state.nodes
        state.nodes += 1
    record = nodes.records[slot]
    record.key = key
    record.seen = NONE
    record.degree = 0
    record.bits = 0
    record.version = 0
    record.mark = 0
    record.labels = 0
    record.told_labels = 0
    record.layers = NONE
    record.told_layers = 0
    for label in range(nodes.labels.shape[1]):
        nodes.labels[slot, label] = NONE
    for column in range(nodes.values.shape[1]):
        nodes.times[slot, column] = NONE
    nodes.slots[key] = slot
    return slot


@inlined
def _link_slot(links: LinkTable, state: Record, key: Int) -> Int:
    slot = np.int64(links.slots[key])
    if slot >= 0:
        return slot
    slot = state.link_free
    if slot >= 0:
        state.link_free = links.records[slot].type
    else:
        slot = state.links
        state.links += 1
    record = links.records[slot]
    record.key = key
    record.seen = NONE
    record.old_source = NONE
    record.old_target = NONE
    record.bits = 0
    record.version = 0
    record.mark = 0
    record.layers = NONE
    record.told_layers = 0
    for column in range(links.values.shape[1]):
        links.times[slot, column] = NONE
    links.slots[key] = slot
    return slot


@inlined
def _touch_node(nodes: NodeTable, state: Record, slot: Int) -> None:
    if nodes.records[slot].mark == 0:
        nodes.records[slot].mark = 1
        nodes.touched[state.touched_nodes] = slot
        state.touched_nodes += 1


@inlined
def _touch_link(links: LinkTable, state: Record, slot: Int) -> None:
    if links.records[slot].mark == 0:
        links.records[slot].mark = 1
        links.touched[state.touched_links] = slot
        state.touched_links += 1


@inlined
def _covered(layers: Records, state: Record, head: Int, top: tuple[Int, Int, Int, Int], labels: Int, keys: Int) -> Int:
    """Lay what was on top (its position, labels, keys and map) beneath other labels and keys; an older layer with these
    is hidden now. Return the first layer."""
    before, at = NONE, head
    while at >= 0 and (layers[at].labels != labels or layers[at].keys != keys):
        before, at = at, layers[at].next
    if at >= 0:
        if before >= 0:
            layers[before].next = layers[at].next
        else:
            head = layers[at].next
        layers[at].next = state.layer_free
        state.layer_free = at
        state.layers -= 1
    at = state.layer_free
    if at >= 0:
        state.layer_free = layers[at].next
    else:
        at = state.layer_end
        state.layer_end += 1
    layer = layers[at]
    layer.position = top[0]
    layer.labels = top[1]
    layer.keys = top[2]
    layer.map = top[3]
    layer.next = head
    state.layers += 1
    return at


@inlined
def _living(layers: Records, state: Record, head: Int, first: Int) -> Int:
    """Let layers before a position go; return the first of the others."""
    before, at = NONE, head
    while at >= 0 and layers[at].position >= first:
        before, at = at, layers[at].next
    if before >= 0:
        layers[before].next = NONE
    else:
        head = NONE
    while at >= 0:
        following = layers[at].next
        layers[at].next = state.layer_free
        state.layer_free = at
        state.layers -= 1
        at = following
    return head


@kernel
def take_in(
    nodes: NodeTable, links: LinkTable, states: Records, kinds: KindTable, rows: SlideRows, present: Present
) -> None:
    """Add arrivals and let events leave, for the first slide; write the elements that may have changed as they are
    now."""
    state = states[0]
    _arrive(nodes, links, state, kinds, rows, (0, rows.nodes.keys.size, 0, rows.links.keys.size), rows.firsts[0])
    if state.void != state.was_void:
        for slot in range(state.nodes):
            if nodes.slots[nodes.records[slot].key] == slot:
                _touch_node(nodes, state, slot)
        for slot in range(state.links):
            if links.slots[links.records[slot].key] == slot:
                _touch_link(links, state, slot)
        state.was_void = state.void
    _show(nodes, links, state, rows.firsts[0], present)


@compiled
def _arrive(
    nodes: NodeTable,
    links: LinkTable,
    state: Record,
    kinds: KindTable,
    rows: SlideRows,
    parts: tuple[Int, Int, Int, Int],
    first: Int,
) -> None:
    """Add a part of the arrivals and let the events before the position `first` leave; note the elements that may have
    changed."""
    new_nodes, new_links = rows.nodes, rows.links
    reads_labels, node_map, link_map = kinds.wholes[0], kinds.wholes[1], kinds.wholes[2]
    state.touched_nodes = 0
    state.touched_links = 0
    for row in range(parts[0], parts[1]):
        position = new_nodes.positions[row]
        slot = _node_slot(nodes, state, new_nodes.keys[row])
        own = nodes.records[slot]
        if reads_labels or node_map >= 0:
            labels = new_nodes.label_sets[row] if reads_labels else np.int64(0)
            keys, old_keys, old_map = np.int64(0), np.int64(0), np.int64(NULL)
            if node_map >= 0:
                keys = new_nodes.values[row, node_map + 1]
                old_map, old_keys = nodes.values[slot, node_map], nodes.values[slot, node_map + 1]
            if own.seen >= 0 and (labels != own.labels or keys != old_keys):
                top = (own.seen, own.labels, old_keys, old_map)
                own.layers = _covered(nodes.layers, state, own.layers, top, labels, keys)
            own.labels = labels
        own.seen = position
        bits = kinds.labels_of_set[new_nodes.label_sets[row]]
        for label in range(nodes.labels.shape[1]):
            if (bits >> label) & 1:
                nodes.labels[slot, label] = position
        for column in range(nodes.values.shape[1]):
            value = new_nodes.values[row, column]
            if value != ABSENT:
                nodes.values[slot, column] = value
                nodes.times[slot, column] = position
        _touch_node(nodes, state, slot)
        entry = nodes.log[state.node_end]
        entry.position = position
        entry.slot = slot
        state.node_end += 1
    for row in range(parts[2], parts[3]):
        position = new_links.positions[row]
        source = _node_slot(nodes, state, new_links.sources[row])
        target = _node_slot(nodes, state, new_links.targets[row])
        slot = _link_slot(links, state, new_links.keys[row])
        record = links.records[slot]
        if link_map >= 0:
            keys, old_keys = new_links.values[row, link_map + 1], links.values[slot, link_map + 1]
            if record.seen >= 0 and keys != old_keys:
                top = (record.seen, np.int64(0), old_keys, links.values[slot, link_map])
                record.layers = _covered(nodes.layers, state, record.layers, top, np.int64(0), keys)
        record.seen = position
        record.type = new_links.types[row]
        record.source = source
        record.target = target
        for column in range(links.values.shape[1]):
            value = new_links.values[row, column]
            if value != ABSENT:
                links.values[slot, column] = value
                links.times[slot, column] = position
        _touch_link(links, state, slot)
        # An end without a relationship, because a later event of this slide moved it, is let go again.
        _touch_node(nodes, state, source)
        _touch_node(nodes, state, target)
        entry = links.log[state.link_end]
        entry.position = position
        entry.slot = slot
        state.link_end += 1
    while state.node_head < state.node_end and nodes.log[state.node_head].position < first:
        _touch_node(nodes, state, nodes.log[state.node_head].slot)
        state.node_head += 1
    while state.link_head < state.link_end and links.log[state.link_head].position < first:
        _touch_link(links, state, links.log[state.link_head].slot)
        state.link_head += 1
    for at in range(state.touched_links):
        record = links.records[links.touched[at]]
        lives = record.seen >= first
        if record.old_source >= 0 and (
            not lives or record.source != record.old_source or record.target != record.old_target
        ):
            nodes.records[record.old_source].degree -= 1
            nodes.records[record.old_target].degree -= 1
            _touch_node(nodes, state, record.old_source)
            _touch_node(nodes, state, record.old_target)
        if lives and (record.source != record.old_source or record.target != record.old_target):
            nodes.records[record.source].degree += 1
            nodes.records[record.target].degree += 1
            _touch_node(nodes, state, record.source)
            _touch_node(nodes, state, record.target)


@compiled
def _show(nodes: NodeTable, links: LinkTable, state: Record, first: Int, present: Present) -> None:
    """Write the touched elements as they are now."""
    for at in range(state.touched_nodes):
        slot = nodes.touched[at]
        nodes.records[slot].layers = _living(nodes.layers, state, nodes.records[slot].layers, first)
        bits = 0
        for label in range(nodes.labels.shape[1]):
            if nodes.labels[slot, label] >= first:
                bits |= 1 << label
        present.labels[at] = bits
        for column in range(nodes.values.shape[1]):
            lives = nodes.times[slot, column] >= first
            present.nodes[at, column] = nodes.values[slot, column] if lives else NULL
    for at in range(state.touched_links):
        slot = links.touched[at]
        links.records[slot].layers = _living(nodes.layers, state, links.records[slot].layers, first)
        for column in range(links.values.shape[1]):
            lives = links.times[slot, column] >= first
            present.links[at, column] = links.values[slot, column] if lives else NULL


# --- giving out ---


@inlined
def _put(facts: Ids, place: Int, end: Int, kind: Int, other: Int, identity: Int, content: Int) -> None:
    facts[place, 0] = end
    facts[place, 1] = kind
    facts[place, 2] = other
    facts[place, 3] = identity
    facts[place, 4] = content


@inlined
def _changed(told: Ids, slot: Int, now: Ids, at: Int) -> bool:
    for column in range(now.shape[1]):  # noqa: SIM110  kernels have no generators
        if told[slot, column] != now[at, column]:
            return True
    return False


@inlined
def _new_version(state: Record, out: Emission, told: Ids, slot: Int, now: Ids, at: Int) -> Int:
    """Number a new version of an element and write its values; the caller writes the rest of its record."""
    place = state.versions
    state.versions += 1
    for column in range(now.shape[1]):
        told[slot, column] = now[at, column]
        out.versions[place, RECORD + column] = now[at, column]
    return state.next_version + place


@inlined
def _beneath(state: Record, out: Emission, layers: Records, head: Int, shape: Int, column: Int) -> Int:
    """Write the layers beneath the last version as versions; return the first, or null."""
    if head < 0:
        return np.int64(NULL)
    version, place = state.next_version + state.versions, state.versions
    key, number = out.versions[place - 1, 0], out.versions[place - 1, 1]
    at = head
    while at >= 0:
        layer = layers[at]
        at = layer.next
        for cell in range(out.versions.shape[1]):
            out.versions[place, cell] = NULL
        out.shapes[place] = shape
        out.versions[place, 0] = key
        out.versions[place, 1] = layer.labels if shape == 0 else number
        if at >= 0:
            out.versions[place, 4] = state.next_version + place + 1
        if column >= 0:
            out.versions[place, RECORD + column] = layer.map
        place += 1
    state.versions = place
    return version


@kernel
def emit(
    nodes: NodeTable,
    links: LinkTable,
    states: Records,
    kinds: KindTable,
    present: Present,
    first: Int,
    out: Emission,
) -> None:
    """Write the facts of touched elements that left and came."""
    state = states[0]
    state.removed = 0
    state.added = 0
    state.versions = 0
    _emit_nodes(nodes, state, kinds, present, first, out)
    _emit_links(links, nodes, state, kinds, present, first, out)


@compiled
def _emit_nodes(nodes: NodeTable, state: Record, kinds: KindTable, present: Present, first: Int, out: Emission) -> None:
    shown = kinds.masks[0]
    for at in range(state.touched_nodes):
        slot = nodes.touched[at]
        record = nodes.records[slot]
        record.mark = 0
        lives = record.seen >= first or record.degree > 0
        bits = 0
        if lives and not state.void:
            labels = present.labels[at]
            for kind in range(kinds.needs.size):
                if labels & kinds.needs[kind] == kinds.needs[kind]:
                    bits |= 1 << kind
            bits &= present.node_passes[at]
        old, before = record.bits, record.version
        version = before
        renewed = False
        told = record.labels if record.seen >= first else np.int64(0)
        # Layers are not compared: an element with some is a new version whenever one of its events comes or goes.
        layered = record.layers >= 0 or record.told_layers or told != record.told_labels
        if bits & shown and (not old & shown or layered or _changed(nodes.told, slot, present.nodes, at)):
            renewed = True
            place = state.versions
            version = _new_version(state, out, nodes.told, slot, present.nodes, at)
            out.shapes[place] = 0
            out.versions[place, 0] = record.key
            out.versions[place, 1] = told
            out.versions[place, 2] = NONE
            out.versions[place, 3] = NONE
            out.versions[place, 4] = _beneath(state, out, nodes.layers, record.layers, 0, kinds.wholes[1])
            record.told_labels = told
            record.told_layers = record.layers >= 0
        for kind in range(kinds.needs.size):
            was, is_now = (old >> kind) & 1, (bits >> kind) & 1
            is_shown = (shown >> kind) & 1
            anew = is_shown and renewed
            if was and (not is_now or anew):
                content = before if is_shown else NULL
                _put(out.removed, state.removed, slot + 1, kinds.node_numbers[kind], content, NULL, NULL)
                state.removed += 1
            if is_now and (not was or anew):
                content = version if is_shown else NULL
                _put(out.added, state.added, slot + 1, kinds.node_numbers[kind], content, NULL, NULL)
                state.added += 1
        record.bits = bits
        record.version = version
        if not lives:
            nodes.slots[record.key] = NONE
            record.degree = state.node_free
            state.node_free = slot


@compiled
def _emit_links(
    links: LinkTable, nodes: NodeTable, state: Record, kinds: KindTable, present: Present, first: Int, out: Emission
) -> None:
    shown, both_ways = kinds.masks[1], kinds.masks[2]
    for at in range(state.touched_links):
        slot = links.touched[at]
        record = links.records[slot]
        record.mark = 0
        lives = record.seen >= first
        bits = 0
        if lives and not state.void:
            bits = kinds.kinds_of_type[record.type] & present.link_passes[at]
        moved = record.source != record.old_source or record.target != record.old_target
        anew = moved or record.type != record.old_type
        old, before = record.bits, record.version
        version = before
        renewed = False
        anew = anew or record.layers >= 0 or record.told_layers != 0
        if bits & shown and (not old & shown or anew or _changed(links.told, slot, present.links, at)):
            renewed = True
            place = state.versions
            version = _new_version(state, out, links.told, slot, present.links, at)
            out.shapes[place] = 1
            out.versions[place, 0] = record.key
            out.versions[place, 1] = record.type
            out.versions[place, 2] = nodes.records[record.source].key
            out.versions[place, 3] = nodes.records[record.target].key
            out.versions[place, 4] = _beneath(state, out, nodes.layers, record.layers, 1, kinds.wholes[2])
            record.told_layers = record.layers >= 0
        for kind in range(kinds.link_numbers.size):
            was, is_now = (old >> kind) & 1, (bits >> kind) & 1
            is_shown, turns = (shown >> kind) & 1, (both_ways >> kind) & 1
            replaced = moved or (is_shown and renewed)
            number = kinds.link_numbers[kind]
            if was and (not is_now or replaced):
                content = before if is_shown else NULL
                one, other = record.old_source + 1, record.old_target + 1
                _put(out.removed, state.removed, one, number, other, slot + 1, content)
                state.removed += 1
                if turns and one != other:
                    _put(out.removed, state.removed, other, number, one, slot + 1, content)
                    state.removed += 1
            if is_now and (not was or replaced):
                content = version if is_shown else NULL
                one, other = record.source + 1, record.target + 1
                _put(out.added, state.added, one, number, other, slot + 1, content)
                state.added += 1
                if turns and one != other:
                    _put(out.added, state.added, other, number, one, slot + 1, content)
                    state.added += 1
        record.bits = bits
        record.version = version
        if lives:
            record.old_source = record.source
            record.old_target = record.target
            record.old_type = record.type
        else:
            links.slots[record.key] = NONE
            record.type = state.link_free
            state.link_free = slot


# --- several slides ---


@compiled
def _test(nodes: NodeTable, links: LinkTable, state: Record, tests: TruthTable, present: Present) -> None:
    """Write the kinds whose conditions hold for the touched elements."""
    of_nodes = tests.node_kinds.size
    for at in range(state.touched_nodes):
        bits = np.int64(-1)
        for one in range(of_nodes):
            column = tests.node_columns[one]
            value = nodes.records[nodes.touched[at]].key if column == NONE else present.nodes[at, column]
            if tests.truths[one, value] == 0:
                bits &= ~(np.int64(1) << tests.node_kinds[one])
        present.node_passes[at] = bits
    for at in range(state.touched_links):
        bits = np.int64(-1)
        for one in range(tests.link_kinds.size):
            column = tests.link_columns[one]
            value = links.records[links.touched[at]].key if column == NONE else present.links[at, column]
            if tests.truths[of_nodes + one, value] == 0:
                bits &= ~(np.int64(1) << tests.link_kinds[one])
        present.link_passes[at] = bits


@kernel
def slide_all(
    nodes: NodeTable,
    links: LinkTable,
    states: Records,
    kinds: KindTable,
    rows: SlideRows,
    tests: TruthTable,
    present: Present,
    out: Emission,
) -> Int:
    """Make the slides whose number of facts is still negative; return how many are made in all. Fewer than all: there
    is room for fewer facts than `wanted`."""
    state = states[0]
    made = 0
    node, link = np.int64(0), np.int64(0)
    while made < rows.firsts.size and rows.removed[made] >= 0:
        made += 1
    if made > 0:
        while node < rows.nodes.keys.size and rows.nodes.positions[node] < rows.stops[made - 1]:
            node += 1
        while link < rows.links.keys.size and rows.links.positions[link] < rows.stops[made - 1]:
            link += 1
    for slide in range(made, rows.firsts.size):
        first, stop = rows.firsts[slide], rows.stops[slide]
        next_node, next_link = node, link
        while next_node < rows.nodes.keys.size and rows.nodes.positions[next_node] < stop:
            next_node += 1
        while next_link < rows.links.keys.size and rows.links.positions[next_link] < stop:
            next_link += 1
        leaving_nodes, leaving_links = np.int64(0), np.int64(0)
        while (
            state.node_head + leaving_nodes < state.node_end
            and nodes.log[state.node_head + leaving_nodes].position < first
        ):
            leaving_nodes += 1
        while (
            state.link_head + leaving_links < state.link_end
            and links.log[state.link_head + leaving_links].position < first
        ):
            leaving_links += 1
        most_links = next_link - link + leaving_links
        most_nodes = next_node - node + leaving_nodes + 4 * most_links
        facts = most_nodes * kinds.needs.size + 2 * most_links * kinds.link_numbers.size
        layers = state.layers + (next_node - node) + (next_link - link)
        filled = max(max(state.removed, state.added), state.versions)
        if filled + max(facts, most_nodes + most_links + layers) > out.removed.shape[0]:
            state.wanted = filled + max(facts, most_nodes + most_links + layers)
            return slide
        _arrive(nodes, links, state, kinds, rows, (node, next_node, link, next_link), first)
        _show(nodes, links, state, first, present)
        _test(nodes, links, state, tests, present)
        _emit_nodes(nodes, state, kinds, present, first, out)
        _emit_links(links, nodes, state, kinds, present, first, out)
        rows.removed[slide] = state.removed
        rows.added[slide] = state.added
        node, link = next_node, next_link
    return rows.firsts.size
