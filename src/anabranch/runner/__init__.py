"""One run of queries over streams into sinks, whatever carries it.

`anabranch.run` is the public function; a package of that name would hide it, so the room is called `runner`.
"""
