<?php
// Included by spin.php.
$x = 1;
require_once __DIR__ . '/spin_required.php';
