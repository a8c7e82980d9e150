<?php
// Included by spin_included.php.

spin();
