// The same question to a database that stands still, asked by hand at 15:40.  Listing 1 of the Seraph paper, with its errata:
// no comma after win_end, the relationship is called r, the path is undirected.
WITH datetime() - duration('PT60M') AS win_start,
   datetime() AS win_end
MATCH (:Bike)-[r:rentedAt]->(s:Station),
      q = (b)-[:returnedAt|rentedAt*3..]-(o:Station)
WITH r, s, q, relationships(q) AS rels, win_start, win_end,
    [n IN nodes(q) WHERE 'Station' IN labels(n) | n.id] AS hops
WHERE ALL(e IN rels WHERE
    win_start <= e.val_time <= win_end AND
    e.user_id = r.user_id AND e.val_time > r.val_time AND
    (e.duration IS NULL OR e.duration < 20) )
RETURN r.user_id, s.id, r.val_time, hops
